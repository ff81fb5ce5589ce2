"""The results of a run: one dictionary, printed as tables, stored as JSON, recorded as Markdown."""

import datetime
import os
import platform
import statistics
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def first_line(command):
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
        return (done.stdout.splitlines() or ["unknown"])[0]
    except OSError:
        return "unknown"


def machine(cores):
    """A description of the machine, without its name."""
    facts = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    flags = facts.get("flags", "").split()
    vectors = [name for name in ("avx2", "fma", "avx512f") if name in flags]
    return {
        "cpu": facts.get("model name", platform.processor() or platform.machine()),
        "vectors": " ".join(vectors) or "unknown",
        "cores": len(cores) if cores else os.cpu_count(),
        "system": platform.system(),
        "rustc": first_line(["rustc", "--version"]),
        "python": platform.python_version(),
        "commit": first_line(["git", "describe", "--always", "--dirty"]),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def now():
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def summarise(task, threads, contestants, rows, columns, peak):
    """One table: a row per contestant, the fastest first."""
    flops = task.flops and task.flops(rows, columns)
    reference = next((c.best("seconds") for c in contestants if c.name == task.baseline), None)
    results = []
    for c in contestants:
        seconds = c.best("seconds")
        rate = flops and flops / seconds / 1e9
        results.append(
            {
                "name": c.name,
                "engine": c.engine,
                "version": c.version,
                "seconds": seconds,
                "median_seconds": statistics.median(r["seconds"] for r in c.replies),
                "ratio": seconds / reference if reference else None,
                "gflops": rate,
                "peak_share": rate and rate / (peak["gflops"] * threads),
                **{field: c.mean(field) for field in task.columns if field in c.replies[-1]},
            }
        )
    results.sort(key=lambda result: result["seconds"])
    return {
        "task": task.name,
        "title": task.title,
        "unit": task.unit,
        "rounds": len(contestants[0].replies),
        "baseline": task.baseline,
        "compared": bool(task.agree or task.same or task.steps),
        "columns": task.columns,
        "threads": threads,
        "results": results,
    }


def disagreements(task, contestants, rounds, rows):
    """Sentences about engines that did not do the same work."""
    found = []
    # An engine too slow for all the work does a sample of it, which says little of its quality.
    whole = [c for c in contestants if not c.replies[-1].get("sample")]
    for field, tolerance in task.agree.items():
        # An engine with another model of the same size has other results, and does not state them.
        stating = [c for c in whole if field in c.replies[-1]]
        if not stating:
            continue
        middle = statistics.median(c.mean(field) for c in stating)
        for c in stating:
            # A share of few cases is coarse: three of them may differ in any event.
            allowed = tolerance + 3 / c.replies[-1].get("judged", float("inf"))
            if not abs(c.mean(field) - middle) <= allowed:
                found.append(
                    f"{c.name}: mean {field} over the rounds is {c.mean(field):.4f}, "
                    f"the engines' median is {middle:.4f}, allowed is {allowed:.2g} either way"
                )
    for c in contestants if task.steps else ():
        steps, expected = c.replies[-1].get("steps"), rounds * task.steps(rows)
        if steps is not None and steps != expected:
            found.append(f"{c.name}: {steps} optimiser steps, expected {expected}")
    for field in task.same:
        said = {c.name: {reply.get(field) for reply in c.replies} for c in contestants}
        reference = task.baseline if task.baseline in said else contestants[0].name
        expected = said[reference]
        found += [
            f"{name}: other {field} than {reference}, or other ones from round to round"
            for name, values in said.items()
            if values != expected or len(values) > 1
        ]
    return found


def aims(task, table):
    """Each aim with what was measured, for a table on one thread that holds the baseline."""
    results = table["results"]
    verdicts = []
    for aim in task.aims:
        ratios = [r["ratio"] for r in results if r["engine"] in aim.engines and r["ratio"]]
        if ratios:
            best = min(ratios)
            verdicts.append(
                {
                    "aim": f"{task.name}: {aim.ratio:g}x faster than {' or '.join(aim.engines)}",
                    "measured": f"{best:.2f}x",
                    "met": best >= aim.ratio,
                }
            )
    for result in results:
        if result["ratio"] and result["name"] in task.most:
            most = task.most[result["name"]]
            verdicts.append(
                {
                    "aim": f"{task.name}: {result['name']} takes at most {most:g}x of "
                    f"{task.baseline}",
                    "measured": f"{result['ratio']:.3f}x",
                    "met": result["ratio"] <= most,
                }
            )
        if result["name"] == task.baseline and task.peak_share is not None:
            verdicts.append(
                {
                    "aim": f"{task.name}: {task.peak_share:.0%} of the core's GEMM peak",
                    "measured": f"{result['peak_share']:.0%}",
                    "met": result["peak_share"] >= task.peak_share,
                }
            )
        if result["name"] == task.baseline and task.limit is not None:
            verdicts.append(
                {
                    "aim": f"{task.name}: at most {task.limit * 1e6:g} microseconds a {task.unit}",
                    "measured": f"{result['seconds'] * 1e6:.1f}",
                    "met": result["seconds"] <= task.limit,
                }
            )
    return verdicts


def grid(header, lines):
    """A Markdown table whose columns line up; the first is left-aligned."""
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]

    def row(cells):
        first, *rest = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths))
        ]
        return "| " + " | ".join([first, *rest]) + " |"

    rule = ["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]
    return "\n".join([row(header), f"|{'|'.join(rule)}|", *map(row, lines)])


def as_text(run):
    """The whole run as Markdown, which also reads well on a terminal."""
    parts = []
    for table in run["tables"]:
        threads = "1 thread" if table["threads"] == 1 else f"{table['threads']} threads"
        has_rate = table["results"][0]["gflops"] is not None
        lines = [
            [
                r["name"],
                f"{r['seconds']:.{5 if r['seconds'] > 1e-3 else 7}f}",
                f"{r['ratio']:.2f}" if r["ratio"] else "-",
                *([f"{r['gflops']:.1f}", f"{r['peak_share']:.0%}"] if has_rate else []),
                *(f"{r[field]:.4f}" if field in r else "-" for field in table["columns"]),
            ]
            for r in table["results"]
        ]
        rate = ["GF/s", "of peak"] if has_rate else []
        header = ["engine", "seconds", f"ratio to {table['baseline']}", *rate, *table["columns"]]
        parts.append(
            f"{table['title']}; {threads}; seconds per {table['unit']}, "
            f"minimum of {table['rounds']} interleaved rounds\n\n{grid(header, lines)}"
        )
    peak = run["peak"]
    measured = ", ".join(f"{p['engine']} {p['gflops']:.0f} ({p['shape']})" for p in peak["all"])
    parts.append(
        f"GEMM peak of one core: {peak['gflops']:.0f} GF/s, the best of: {measured}. "
        "With 2 threads the share is of twice that."
    )
    if run["aims"]:
        lines = [[a["aim"], a["measured"], "met" if a["met"] else "missed"] for a in run["aims"]]
        parts.append(grid(["aim, one thread", "measured", "verdict"], lines))
    if run["disagreements"]:
        parts.append(
            "Engines that did not do the same work:\n"
            + "\n".join(f"- {sentence}" for sentence in run["disagreements"])
        )
    elif any(table["compared"] for table in run["tables"]):
        parts.append("All engines did the same work, as far as it can be compared.")
    else:
        parts.append("The engines use different methods, so their results were not compared.")
    return "\n\n".join(parts)


def as_section(run):
    """A dated section for BENCHMARKS.md."""
    m = run["machine"]
    versions = sorted({r["version"] for table in run["tables"] for r in table["results"]})
    return (
        f"## {run['date'][:10]}, commit {m['commit']}\n\n"
        f"Machine: {m['cpu']}, {m['cores']} cores, {m['vectors']}; {m['system']}; "
        f"load at start {m['load_at_start']}. {m['rustc']}, Python {m['python']}.\n"
        f"Rows: {run['rows']}. Engines: {'; '.join(versions)}.\n"
        f"Command: `{run['command']}`.\n\n{as_text(run)}\n"
    )
