"""Sends requests to `tyrex serve` as fast as it answers, beside the library on the same rows.

Needs wrk, the load generator, and nothing else beside Rust and Python.
"""

import argparse
import contextlib
import json
import math
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import report

BENCH = Path(__file__).resolve().parent
REPOSITORY = BENCH.parent
RECORD = REPOSITORY / "BENCHMARKS.md"
MODEL = "german"
EXAMPLES = """examples:
  bench/load                         the table: latencies, rates, ratios to the library
  bench/load --record                and append it to BENCHMARKS.md
  bench/load --soak 30 --csv rss.csv 30 minutes at saturation, with the memory every 10 seconds
"""
#: Seconds between two readings of the memory, and the warm-up after which it should be flat.
EVERY, WARM_UP = 10, 300
#: Two-sided 95 % quantiles of Student's t, for 1, 2, .. degrees of freedom.
STUDENT = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
]  # fmt: skip


def arguments():
    parser = argparse.ArgumentParser(
        prog="bench/load",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (5)")
    parser.add_argument("--seconds", type=float, default=5, help="seconds of each part (5)")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="saturation for so long")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="where the soak's memory goes")
    parser.add_argument("--record", action="store_true", help="append to BENCHMARKS.md")
    parser.add_argument("--tyrex", type=Path, help="this command, instead of building one")
    parser.add_argument("--library", type=Path, help="this example, instead of building it")
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


def build(args):
    """The command and the library's example, in release."""
    if args.tyrex is None or args.library is None:
        say("building in release")
        what = ["--bin", "tyrex", "--example", "stability_rate"]
        command = ["cargo", "build", "--release", "--workspace", "--all-features", *what]
        subprocess.run(command, cwd=REPOSITORY, check=True, stdout=sys.stderr)
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"
    return args.tyrex or target / "tyrex", args.library or target / "examples" / "stability_rate"


def processor_time(process):
    """The seconds a process has had a core, of all its threads."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Service:
    """A service on an empty database, and its start times."""

    def __init__(self, tyrex, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        command = [tyrex, "serve", "--dataset", MODEL, "--port", str(self.port)]
        self.log = (folder / "service.log").open("w")
        started = time.monotonic()
        self.process = subprocess.Popen(
            [*command, "--ledger", folder / "tyrex.db"], stdout=self.log, stderr=self.log
        )
        self.waits = {}
        self.wait(started, "page", lambda: self.get("/", text=True))
        self.wait(started, "applicants", lambda: self.applicants(1))
        self.wait(started, "ensemble", lambda: self.summary()["ensemble"]["state"] == "ready")

    def wait(self, started, what, is_there):
        while time.monotonic() - started < 120:
            if self.process.poll() is not None:
                raise SystemExit(f"the service ended: see {self.log.name}")
            with contextlib.suppress(urllib.error.URLError, ConnectionError, StopIteration):
                if is_there():
                    self.waits[what] = time.monotonic() - started
                    return
            time.sleep(0.02)
        raise SystemExit(f"no {what} after two minutes: see {self.log.name}")

    def get(self, path, text=False):
        with urllib.request.urlopen(self.address + path, timeout=10) as answer:
            body = answer.read().decode()
            return body if text else json.loads(body)

    def post(self, path, document):
        request = urllib.request.Request(
            self.address + path,
            json.dumps(document).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def applicants(self, limit):
        path = f"/v1/models/{MODEL}/applicants?rejected=true&offset=0&limit={limit}"
        return self.get(path)["applicants"]

    def summary(self):
        return next(each for each in self.get("/v1/models")["models"] if each["id"] == MODEL)

    def resident(self):
        """Its memory, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def end(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


class Library:
    """The library in its own process."""

    def __init__(self, example, threads, seconds):
        self.process = subprocess.Popen(
            [example, str(threads), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said = json.loads(self.process.stdout.readline())
        self.rates, self.costs = [], []

    def round(self):
        before = processor_time(self.process)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        done = json.loads(self.process.stdout.readline())
        self.rates.append(done["rate"])
        self.costs.append((processor_time(self.process) - before) / done["rows"])

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


class Load:
    """One kind of requests from so many connections."""

    def __init__(self, name, service, folder, requests, connections, rows=1):
        self.name, self.service, self.connections, self.rows = name, service, connections, rows
        self.file = folder / f"{len(list(folder.iterdir()))}.requests"
        lines = [f"{path}\t{json.dumps(document)}\n" for path, document in requests]
        self.file.write_text("".join(lines))
        self.rounds = []

    def command(self, seconds):
        options = ["--threads", "1", "--connections", str(self.connections), "--timeout", "60s"]
        script = ["--duration", f"{math.ceil(seconds)}s", "--script", BENCH / "load.lua"]
        environment = {**os.environ, "REQUESTS": str(self.file)}
        return {"args": ["wrk", *options, *script, self.service.address], "env": environment}

    def round(self, seconds):
        before = processor_time(self.service.process)
        done = subprocess.run(**self.command(seconds), check=True, capture_output=True, text=True)
        round = self.read(done.stdout)
        spent = processor_time(self.service.process) - before
        round["cost"] = spent / max(1, self.rows * answered(round))
        self.rounds.append(round)

    @staticmethod
    def read(output):
        return json.loads(next(line for line in output.splitlines() if line.startswith("{")))

    def rate(self):
        """Rows answered a second, in the best round."""
        return max(self.rows * answered(r) / r["seconds"] for r in self.rounds)

    def best(self, field):
        return min(r[field] for r in self.rounds)

    def failures(self):
        return {name: sum(r[name] for r in self.rounds) for name in ("refused", "wrong", "lost")}


def answered(round):
    return round["requests"] - round["refused"] - round["wrong"]


def stability(features, rows=1):
    """Requests that ask for so many rows each, every row as often as any other."""
    twice = features + features
    starts = range(0, len(features), rows)
    return [("/v1/stability", {"rows": twice[start : start + rows]}) for start in starts]


def same(row):
    """A row's answer, whether its score of 32 bits was written with the digits of 32 or of 64."""
    return {**row, "score": struct.pack("f", row["score"])}


def check_answers(service, library):
    """The service must give the same answers as the library, to the last digit."""
    said, rows = service.summary(), library.said["rows"]
    if said["fingerprint"] != library.said["fingerprint"]:
        return "The service's model differs from the library's; their answers were not compared."
    answer = service.post("/v1/stability", {"indices": [row["row"] for row in rows]})["rows"]
    different = sum(same(own) != same(other) for own, other in zip(answer, rows, strict=True))
    if different:
        raise SystemExit(f"{different} of {len(rows)} answers differ from the library's")
    return f"The service's answers to all {len(rows)} rows were the library's, bit by bit."


def table(args, service, example, folder):
    cores = len(os.sched_getaffinity(0))
    features = [applicant["features"] for applicant in service.applicants(1000)]
    library = Library(example, cores, args.seconds)
    same = check_answers(service, library)
    surviving = [("/v1/survival", {"rows": [row]}) for row in features]
    loads = [
        Load("stability, 1 row", service, folder, stability(features), 1),
        Load("stability, 1 row", service, folder, stability(features), 64),
        Load("stability, 1 row", service, folder, stability(features), 1000),
        Load("stability, 64 rows", service, folder, stability(features, 64), 4, rows=64),
        Load("survival, 50 models", service, folder, surviving, 1),
        Load("survival, 50 models", service, folder, surviving, 64),
    ]
    for load in loads:
        load.round(1)
        load.rounds.clear()
    for count in range(args.rounds):
        say(f"round {count + 1} of {args.rounds}")
        library.round()
        for load in loads:
            load.round(args.seconds)
            # A pause, so that one side's heat does not slow the other.
            time.sleep(0.2)
    library.end()
    rate, cost = max(library.rates), min(library.costs)
    header = [
        "requests",
        "connections",
        "p50 ms",
        "p99 ms",
        "rows/s",
        "of the library's",
        "core us/row",
        "the library's share",
    ]
    own = [f"{rate:.0f}", "100%", f"{1e6 * cost:.0f}", "100%"]
    lines = [["library, all rows", "-", "-", "-", *own]]
    for load in loads:
        is_same_work = load.name.startswith("stability")
        p50, p99 = (f"{load.best(name):.2f}" for name in ("p50", "p99"))
        lines.append(
            [
                load.name,
                str(load.connections),
                p50,
                p99,
                f"{load.rate():.0f}",
                f"{load.rate() / rate:.0%}" if is_same_work else "-",
                f"{1e6 * load.best('cost'):.0f}",
                f"{cost / load.best('cost'):.0%}" if is_same_work else "-",
            ]
        )
    failures = [
        f"{load.name}, {load.connections} connections: {load.failures()}"
        for load in loads
        if any(load.failures().values())
    ]
    waits = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in service.waits.items())
    return {
        "command": f"bench/load --rounds {args.rounds} --seconds {args.seconds:g}",
        "title": f"Single rows of {MODEL} over loopback, k 1000; {cores} cores shared by service, "
        f"load generator and everything else; best of {args.rounds} interleaved rounds of "
        f"{args.seconds:g} s each",
        "table": (header, lines),
        "notes": [
            same,
            "core us/row: time on a core, of the service alone; the library's share of it is what "
            "the rate would be if the load generator had cores of its own.",
            f"From the start on an empty database to: {waits}.",
            *(failures or ["No request was refused, lost or answered with an error."]),
        ],
    }


def slope(samples):
    """MiB per hour after the warm-up, with a 95 % interval: a line through the means of minutes,
    which unlike single looks are nearly independent."""
    late = [(t, memory) for t, memory in samples if t >= WARM_UP]
    minutes = {}
    for t, memory in late:
        minutes.setdefault(int(t // 60), []).append(memory)
    points = [(minute / 60, statistics.mean(own)) for minute, own in minutes.items()]
    if len(points) < 3:
        return None
    x, y = (statistics.mean(values) for values in zip(*points, strict=True))
    spread = sum((a - x) ** 2 for a, _ in points)
    per_hour = sum((a - x) * (b - y) for a, b in points) / spread
    residual = sum((b - y - per_hour * (a - x)) ** 2 for a, b in points)
    freedom = len(points) - 2
    error = math.sqrt(residual / freedom / spread)
    margin = STUDENT[min(freedom, len(STUDENT)) - 1] * error
    return per_hour, per_hour - margin, per_hour + margin


def soak(args, service, folder):
    """Saturation with all kinds of requests, and the memory during it."""
    features = [applicant["features"] for applicant in service.applicants(200)]
    mixed = []
    for index, row in enumerate(features):
        mixed += 8 * [("/v1/stability", {"rows": [row]})] + 2 * [("/v1/survival", {"rows": [row]})]
        if index % 20 == 0:
            mixed.append(("/v1/explain", {"rows": [row], "method": "min-cost", "certify": False}))
    load = Load("mixed", service, folder, mixed, 64)
    started, samples = time.monotonic(), []
    generator = subprocess.Popen(
        **load.command(60 * args.soak), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out = args.csv.open("w") if args.csv else contextlib.nullcontext()
    with out:
        while generator.poll() is None:
            samples.append((time.monotonic() - started, service.resident()))
            if args.csv:
                if len(samples) == 1:
                    out.write("seconds,resident_mib\n")
                out.write("{:.1f},{:.2f}\n".format(*samples[-1]))
                out.flush()
            with contextlib.suppress(subprocess.TimeoutExpired):
                generator.wait(EVERY)
    load.rounds.append(Load.read(generator.communicate()[0]))
    round = load.rounds[0]
    at = {int(t // 60): memory for t, memory in samples}
    minutes = sorted(at)
    shown = [m for m in minutes if m in (0, 1, 2, 5, 10, 15, 20, 25, 30) or m == minutes[-1]]
    trend = slope(samples)
    verdict = "too short to say"
    if trend:
        per_hour, low, high = trend
        verdict = (
            f"{per_hour:+.2f} MiB per hour after the first {WARM_UP // 60} minutes "
            f"(95 % interval {low:+.2f} to {high:+.2f})"
        )
    lines = [[str(minute), f"{at[minute]:.1f}"] for minute in shown]
    return {
        "command": f"bench/load --soak {args.soak:g} --csv rss.csv",
        "title": f"{args.soak:g} minutes at saturation: stability, survival and explain from 64 "
        "connections; the service's resident memory",
        "table": (["minute", "MiB"], lines),
        "notes": [
            f"Memory: {verdict}.",
            f"{round['requests']} requests, {round['requests'] / round['seconds']:.0f} a second; "
            f"p50 {round['p50']:.1f} ms, p99 {round['p99']:.1f} ms; "
            f"{load.failures()['refused']} refused, {load.failures()['wrong']} answered with an "
            f"error, {load.failures()['lost']} lost.",
        ],
    }


def section(result):
    about = report.machine(None)
    lines = [
        f"## {report.now()[:10]}, commit {about['commit']}",
        "",
        f"Machine: {about['cpu']}, {about['cores']} cores, {about['vectors']}; {about['system']}; "
        f"load at start {about['load_at_start']}. {about['rustc']}, {wrk()}.",
        f"Command: `{result['command']}`.",
        "",
        result["title"],
        "",
        report.grid(*result["table"]),
        "",
        *result["notes"],
    ]
    return "\n".join(lines) + "\n"


def wrk():
    said = subprocess.run(["wrk", "--version"], capture_output=True, text=True).stdout
    return " ".join(said.split()[:2]) or "wrk"


def main():
    args = arguments()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing: apt-get install wrk")
    tyrex, example = build(args)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        service = Service(tyrex, folder)
        try:
            if args.soak:
                result = soak(args, service, folder)
            else:
                result = table(args, service, example, folder)
        finally:
            service.end()
    text = section(result)
    print(text)
    if args.record:
        with RECORD.open("a") as record:
            record.write("\n" + text)


if __name__ == "__main__":
    main()
