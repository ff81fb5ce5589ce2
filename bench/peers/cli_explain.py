"""The command line: a round is `tyrex explain --out advice.csv`, from its start to its end."""

import subprocess
import tempfile
import time
from pathlib import Path

import worker  # first: it keeps stdout for replies
import explaining


def main():
    args = worker.arguments()
    asked = explaining.read(args.problem)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "advice.csv"
        command = [asked.cli, "explain", "--dataset", "heloc", "--data-dir", asked.data]
        command += ["--model", asked.model, "--out", str(out), "--force"]
        command += ["--threads", str(args.threads), *asked.flags]

        def one_round():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - start
            return {"seconds": seconds, **explaining.judge(explaining.advice(out))}

        said = subprocess.run([asked.cli, "--version"], check=True, capture_output=True, text=True)
        worker.serve(f"{said.stdout.splitlines()[0]}, command line", one_round)


if __name__ == "__main__":
    main()
