"""The Python package as a script: a round is a process that does what the command line does.

It starts Python, imports tyrex and pandas, reads data and model, explains, and writes advice.csv.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import worker  # first: it keeps stdout for replies
import explaining
import tyrex

SCRIPT = """
import json, sys
import tyrex

out, data, model, request = sys.argv[1:]
explainer = tyrex.Explainer(model, tyrex.datasets.load_heloc("reference", data_dir=data))
explainer.explain(**json.loads(request), progress=False).to_pandas().to_csv(out)
"""


def main():
    args = worker.arguments()
    asked = explaining.read(args.problem)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "advice.csv"
        command = [sys.executable, "-c", SCRIPT, str(out), asked.data, asked.model]
        command.append(json.dumps(asked.request))

        def one_round():
            start = time.perf_counter()
            subprocess.run(command, check=True)
            seconds = time.perf_counter() - start
            return {"seconds": seconds, **explaining.judge(explaining.advice(out))}

        worker.serve(f"tyrex {tyrex.__version__}, Python script", one_round)


if __name__ == "__main__":
    main()
