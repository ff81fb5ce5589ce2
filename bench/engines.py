"""The driver's side of the protocol: finding engines, starting workers, running rounds."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
REPOSITORY = BENCH.parent
START_LIMIT, ROUND_LIMIT = 600, 300  # seconds


class EngineFailure(Exception):
    """A worker ended, hung or gave an invalid answer; the message has its last output."""


def peers(task):
    """The engines that have a file for the task, by name."""
    found = {}
    suffix = "_" + task.replace("-", "_")
    for path in sorted((BENCH / "peers").glob(f"*{suffix}.py")):
        name = path.stem.removesuffix(suffix).replace("_", "-")
        found[name] = [interpreter(name), str(path)]
    return found


def own_environment(engine):
    """The folder and the requirements of an engine with its own environment, or None."""
    word = engine.split("-")[0]
    requirements = BENCH / f"requirements-{word}.txt"
    return (BENCH / f".venv-{word}", requirements) if requirements.is_file() else None


def interpreter(engine):
    own = own_environment(engine)
    return str(own[0] / "bin" / "python") if own else sys.executable


def make_environments(names, progress):
    """Installs what engines with their own requirements need, once."""
    for folder, requirements in sorted({own for name in names if (own := own_environment(name))}):
        progress(f"looking at {folder.name}")
        command = [REPOSITORY / "scripts" / "python-env", folder, requirements]
        subprocess.run([str(part) for part in command], check=True, stdout=sys.stderr)


def build_tyrex(progress):
    """Builds tyrex's worker in release and returns its path."""
    progress("building tyrex")
    return _build("tyrex", "--example", "bench_worker") + "/examples/bench_worker"


def build_cli(progress):
    """Builds the command line in release and returns its path."""
    progress("building the command line")
    return _build("tyrex-cli", "--bin", "tyrex") + "/tyrex"


def _build(package, *what):
    cargo = ["cargo", "build", "--release", "--quiet", "--package", package, *what]
    subprocess.run(cargo, cwd=REPOSITORY, check=True)
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    return str(Path(json.loads(metadata.stdout)["target_directory"]) / "release")


def install_package(wheel, progress):
    """Installs the Python package for its workers: this wheel, or one built as it is shipped."""
    python = interpreter("python")
    with tempfile.TemporaryDirectory() as folder:
        if wheel is None:
            progress("building the Python package")
            maturin = [python, "-m", "maturin", "build", "--profile", "dist", "--quiet"]
            maturin += ["--out", folder]
            subprocess.run(maturin, cwd=REPOSITORY / "python", check=True, stdout=sys.stderr)
            (wheel,) = map(str, Path(folder).glob("*.whl"))
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        only_this = ["--force-reinstall", "--no-deps"]
        subprocess.run([*pip, *only_this, wheel], check=True, stdout=sys.stderr)


def environment(threads):
    """The environment variables that limit the threads of each library."""
    spread = "true" if threads > 1 else "false"
    return {
        **os.environ,
        **{
            name: str(threads)
            for name in (
                "OMP_NUM_THREADS",
                "MKL_NUM_THREADS",
                "OPENBLAS_NUM_THREADS",
                "NPROC",
                "PJRT_NPROC",
                "TF_NUM_INTRAOP_THREADS",
                "TF_NUM_INTEROP_THREADS",
                "RAYON_NUM_THREADS",
            )
        },
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={spread}",
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }


def cores():
    """The cores this process may use; None if the system cannot report or pin them."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


class Worker:
    """One process of one engine, pinned to its cores, stopped while others run."""

    def __init__(self, name, command, threads, pinned):
        self.name = name
        self.log = tempfile.TemporaryFile()
        pin = (lambda: os.sched_setaffinity(0, pinned)) if pinned else None
        self.process = subprocess.Popen(
            [*command, "--threads", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment(threads),
            preexec_fn=pin,
            text=True,
            bufsize=1,
        )

    def ready(self):
        """Waits until the worker has loaded and warmed up; returns its version."""
        answer = self._answer(START_LIMIT)
        if not answer.get("ready"):
            raise self._failure(f"said {answer} instead of ready")
        self.process.send_signal(signal.SIGSTOP)
        return answer.get("version", self.name)

    def ask(self):
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._failure("has ended") from None

    def answer(self):
        answer = self._answer(ROUND_LIMIT)
        self.process.send_signal(signal.SIGSTOP)
        return answer

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()

    def _answer(self, limit):
        timer = threading.Timer(limit, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            said = f"said {line.strip()!r}" if line else f"gave no answer within {limit} s"
            raise self._failure(said)
        return answer

    def _failure(self, what):
        time.sleep(0.2)  # wait for its last output
        self.log.seek(0)
        words = self.log.read().decode(errors="replace").strip().splitlines()[-8:]
        return EngineFailure("\n  ".join([f"{self.name} {what}", *words]))


class Contestant:
    """One row of a table: an engine as one process, or as one process per core."""

    def __init__(self, engine, command, threads, pinned, processes=1):
        self.engine = engine
        self.name = engine if processes == 1 else f"{engine} x{processes} processes"
        self.command = command
        self.shares = (
            [(threads, pinned)]
            if processes == 1
            else [(1, pinned and [pinned[i]]) for i in range(processes)]
        )
        self.workers, self.replies, self.version = [], [], ""

    def start(self):
        """Starts the workers and waits until all are warm."""
        for number, (threads, pinned) in enumerate(self.shares):
            command = [*self.command, "--seed", str(1000 * number)]
            self.workers.append(Worker(self.name, command, threads, pinned))
        self.version = [worker.ready() for worker in self.workers][0]

    def round(self):
        """One round, all processes at once: seconds of the slowest over the units of all."""
        for worker in self.workers:
            worker.ask()
        answers = [worker.answer() for worker in self.workers]
        try:
            combined = {
                field: sum(answer[field] for answer in answers) / len(answers)
                for field, value in answers[0].items()
                if isinstance(value, (int, float)) and field not in ("seconds", "units")
            }
            if "seconds" in answers[0]:
                units = sum(answer["units"] for answer in answers)
                combined["seconds"] = max(answer["seconds"] for answer in answers) / units
        except (KeyError, TypeError) as problem:
            raise EngineFailure(f"{self.name} answered {answers}: {problem!r}") from None
        self.replies.append({**answers[0], **combined})

    def best(self, field):
        return min(reply[field] for reply in self.replies)

    def mean(self, field):
        return sum(reply[field] for reply in self.replies) / len(self.replies)

    def close(self):
        for worker in self.workers:
            worker.close()


def contest(contestants, rounds, progress):
    """Starts all engines, one by one, then runs the rounds in turn. Closes all in any case."""
    try:
        for contestant in contestants:
            progress(f"warming up {contestant.name}")
            contestant.start()
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            for contestant in contestants:
                contestant.round()
    finally:
        progress("")
        for contestant in contestants:
            contestant.close()
    return contestants
