"""Gives tyrex and its peers the same work, in turn, and prints the ratios.

Started by `bench/compare`, which makes the Python environment first.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import engines
import report
from tasks import TASKS, TYREX

RECORD = engines.REPOSITORY / "BENCHMARKS.md"
RESULT = engines.BENCH / "results" / "compare.json"
EXAMPLES = """examples:
  bench/compare                       the usual tasks, all engines, 20 rounds
  bench/compare --quick               a few rounds on few rows: does everything run?
  bench/compare --task train --threads 1 --only tyrex,jax
  bench/compare --rounds 40 --record  and append the tables to BENCHMARKS.md
  bench/compare --task explain        the Python package against the command line
  bench/compare --task counterfactual DiCE and Alibi, in environments of their own
  bench/compare --task tree-advice    treecf, NICE and DiCE on boosted trees
"""


def arguments():
    parser = argparse.ArgumentParser(
        prog="bench/compare",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--task",
        choices=[*TASKS, "all"],
        default="all",
        help="what to compare; all: all that need no environment of their own",
    )
    parser.add_argument("--threads", choices=["1", "2", "both"], default="both")
    parser.add_argument("--rounds", type=positive, metavar="N", help="rounds (20; quick: 3)")
    parser.add_argument("--rows", type=positive, metavar="N", help="use only the first N rows")
    parser.add_argument("--only", metavar="A,B", help="only these engines, by name")
    parser.add_argument("--quick", action="store_true", help="3 rounds on 2048 rows")
    parser.add_argument(
        "--worker", metavar="FILE", help="this tyrex worker, instead of building one in release"
    )
    parser.add_argument(
        "--cli", metavar="FILE", help="this command line for explain, instead of building it"
    )
    parser.add_argument(
        "--wheel", metavar="FILE", help="this Python package for explain, instead of building it"
    )
    parser.add_argument(
        "--json",
        type=Path,
        default=RESULT,
        metavar="FILE",
        help="where the results go (bench/results/compare.json)",
    )
    parser.add_argument("--record", action="store_true", help="append to BENCHMARKS.md")
    args = parser.parse_args()
    args.rounds = args.rounds or (3 if args.quick else 20)
    args.rows = args.rows or (2048 if args.quick else None)
    args.thread_counts = {"1": [1], "2": [2], "both": [1, 2]}[args.threads]
    usual = [task for task in TASKS.values() if not task.on_request]
    args.tasks = usual if args.task == "all" else [TASKS[args.task]]
    args.only = args.only.split(",") if args.only else None
    return args


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("expected a number of at least 1")
    return value


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def chosen(task, subcommand, only, tyrex):
    """The commands of the engines of a task, tyrex first, as far as they are wanted."""
    known = engines.peers(task)
    if tyrex and subcommand:
        known = {TYREX: [tyrex, subcommand], **known}
    return {name: command for name, command in known.items() if not only or name in only}


def gemm_peak(tyrex, pinned):
    """The fastest single-precision product on one core, over all engines' kernels."""
    contestants = [
        engines.Contestant(name, command, 1, pinned)
        for name, command in chosen("gemm", "gemm", None, tyrex).items()
    ]
    engines.contest(contestants, 5, lambda text: progress(text and f"GEMM peak: {text}"))
    every = [
        {"engine": c.engine, **max(c.replies, key=lambda reply: reply["gflops"])}
        for c in contestants
    ]
    return {**max(every, key=lambda one: one["gflops"]), "all": every}


def main():
    args = arguments()
    import boosted  # numpy: not needed for --help
    import explaining
    import problem
    import rows

    known = {name for task in args.tasks for name in chosen(task.name, task.subcommand, None, "-")}
    if unknown := set(args.only or ()) - known:
        sys.exit(f"unknown engine {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
    cores = engines.cores()
    if 2 in args.thread_counts and cores and len(cores) < 2:
        if args.threads == "2":
            sys.exit("two threads need two cores; this process may use one")
        args.thread_counts = [1]
        print("only one core: the table for two threads is left out", file=sys.stderr)
    machine = report.machine(cores)
    if machine["load_at_start"] > 0.5:
        print(
            f"the machine is busy (load {machine['load_at_start']}): do not trust the figures",
            file=sys.stderr,
        )

    wanted = known & set(args.only or known)
    engines.make_environments(wanted, progress)
    tyrex = None
    if TYREX in wanted:
        tyrex = args.worker or engines.build_tyrex(progress)
    is_explaining = any(task.is_explaining for task in args.tasks)
    if is_explaining:
        if not rows.heloc_folder():
            sys.exit("explain needs heloc.csv, in $TYREX_DATA or ../shared/data")
        cli = args.cli or engines.build_cli(progress)
        if wanted - {"cli"}:
            engines.install_package(args.wheel, progress)
    x, y, source = rows.load(args.rows)
    explained = None
    if any(task.is_search for task in args.tasks):
        searches = any(task.name == "trex-e" for task in args.tasks)
        explained = problem.make(args.rows, args.json.parent, progress, searches)
    run = {
        "format_version": 1,
        "date": report.now(),
        "machine": machine,
        "rows": source,
        "rounds": args.rounds,
        "command": " ".join(["bench/compare", *sys.argv[1:]]),
        "peak": gemm_peak(tyrex, cores and cores[:1]),
        "tables": [],
        "aims": [],
        "disagreements": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rows.write(folder / "rows.bin", x, y)
        if explained:
            problem.write(folder, explained)
        if is_explaining:
            explaining.write(folder, cli, rows.heloc_folder(), quick=args.rows is not None)

        for task in args.tasks:
            # Each task about trees has a model, and so a folder, of its own.
            inputs, judge = folder, partial(problem.judge, problem=explained)
            if task.forest:
                inputs = folder / task.name
                inputs.mkdir()
                trees = boosted.make(inputs, task.forest, args.rows, progress)
                judge = partial(boosted.judge, problem=trees)
            for threads in sorted(set(args.thread_counts) & set(task.threads)):
                compare(run, task, threads, args, tyrex, cores, inputs, x.shape, judge)

    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(run, indent=1) + "\n")
    print(f"Rows: {source}\n\n{report.as_text(run)}\n\nWritten: {args.json}")
    if args.record:
        record(run)
    return 1 if run["disagreements"] else 0


def compare(run, task, threads, args, tyrex, cores, folder, shape, judge):
    """Adds the table of one task on so many threads to the run."""
    contestants = []
    has_folder = task.is_search or task.is_explaining or task.forest
    inputs = ["--problem", folder] if has_folder else ["--rows", folder / "rows.bin"]
    for name, command in chosen(task.name, task.subcommand, args.only, tyrex).items():
        command = [*command, *map(str, inputs)]
        for processes in sorted({1, threads if task.splits else 1}):
            pinned = cores and cores[:threads]
            contestants.append(engines.Contestant(name, command, threads, pinned, processes))
    if not contestants:
        return
    label = f"{task.name}, {threads} thread{'s' * (threads > 1)}"
    rounds = min(args.rounds, task.rounds or args.rounds)
    engines.contest(contestants, rounds, lambda text: progress(text and f"{label}: {text}"))
    for reply in (reply for contestant in contestants for reply in contestant.replies):
        if "points" in reply:
            reply.update(judge(reply))
    table = report.summarise(task, threads, contestants, *shape, run["peak"])
    run["tables"].append(table)
    if threads == 1:
        run["aims"] += report.aims(task, table)
    run["disagreements"] += report.disagreements(task, contestants, rounds, shape[0])


def record(run):
    """Appends the run to BENCHMARKS.md, which gets its heading the first time."""
    heading = "# Benchmarks\n\nMade by `bench/compare --record`; bench/README.md says how.\n"
    before = RECORD.read_text() if RECORD.exists() else heading
    RECORD.write_text(f"{before.rstrip()}\n\n{report.as_section(run)}")
    print(f"Recorded: {RECORD.name}")


if __name__ == "__main__":
    # Exits like an interrupt, so that no stopped worker remains.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except engines.EngineFailure as failure:
        sys.exit(f"engine failed: {failure}")
    except subprocess.CalledProcessError as failure:
        sys.exit(f"{' '.join(failure.cmd)} failed")
    except KeyboardInterrupt:
        sys.exit(130)
