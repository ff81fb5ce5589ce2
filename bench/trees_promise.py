"""Advice for a boosted model, judged by retrained ones: `trex-e`, `trex-nn`, treecf.

    python bench/trees_promise.py --folder DIR [--applicants 60] [--tyrex FILE]

The model and its retrained versions are XGBoost's: another seed, and rows drawn with replacement.
161 of them make the folder that `explain --ensemble` takes (40 search, 60 tune, 61 are fresh), with
20 siblings, of another seed and the same rows, with which the model is compared. 100 others judge,
of which the table's share of accepting models is over the first 20. Every column is a
whole number, the levels of German's categories by their place in the schema, so that all three
search the same rows: whole numbers between the least and the largest of the column. Costs are sums
of standard deviations in the training rows. Applicants are the first test rows that the model
rejects. The folder keeps models and answers, so a run can be repeated with more applicants.

treecf 0.3.2 (requirements-treecf.txt) is left out where it is not installed.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import xgboost

REPOSITORY = Path(__file__).resolve().parent.parent
SETS = {"search": 40, "tune": 60, "fresh": 61, "judge": 100, "sibling": 20}
JUDGES, PROMISE, CONFIDENCE = 20, 0.9, 0.95
SHAPE = {
    "n_estimators": 100,
    "max_depth": 3,
    "learning_rate": 0.1,
    "subsample": 0.8,
    "colsample_bytree": 0.8,
    "n_jobs": 1,
}
TRAINING_SHARE = 0.75


def load(name, folder):
    """Names of columns, rows of whole numbers, and 1 for the favourable label."""
    import tomllib

    schema = tomllib.loads((REPOSITORY / f"data/schemas/{name}.toml").read_text())
    with (folder / f"{name}.csv").open() as file:
        lines = list(csv.DictReader(file))
    if name == "heloc":  # rows without any record
        lines = [line for line in lines if line["ExternalRiskEstimate"] != "-9"]
    codes = {each["name"]: list(map(str, each.get("levels", ()))) for each in schema["feature"]}

    def number(column, text):
        levels = codes[column]
        return levels.index(text) if levels else int(text)

    x = np.array([[number(column, line[column]) for column in codes] for line in lines], float)
    label = schema["label"]
    y = np.array([line[label["column"]] == label["favourable"] for line in lines], int)
    return list(codes), x, y


def write_rows(path, names, x, y=None):
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(names + ([] if y is None else ["label"]))
        for number, row in enumerate(x):
            values = [int(value) for value in row]
            out.writerow(values + ([] if y is None else ["yes" if y[number] else "no"]))


def write_schema(path, names, x):
    lines = [
        'format_version = 1\n[label]\ncolumn = "label"\nfavourable = "yes"\nunfavourable = "no"',
        '[model]\ninput = "raw"\n[scaling]\nmethod = "z-score"',
    ]
    for name, column in zip(names, x.T):
        ends = f"[{int(column.min())}, {int(column.max())}]"
        lines.append(f'[[feature]]\nname = "{name}"\nkind = "integer"\nrange = {ends}')
    path.write_text("\n".join(lines) + "\n")


def train(folder, names, x, y, seed, models):
    """The model, and folders of retrained ones and of judges; those that are there are kept."""
    rng = np.random.default_rng(seed)
    path = folder / "model.json"

    def fitted(number, rows):
        made = xgboost.XGBClassifier(random_state=seed + number, **SHAPE)
        return made.fit(x[rows], y[rows])

    if not path.exists():
        fitted(0, slice(None)).save_model(path)
    (folder / "ensemble").mkdir(exist_ok=True)
    (folder / "judges").mkdir(exist_ok=True)
    number = 0
    for role, count in models.items():
        for place in range(count):
            number += 1
            drawn = rng.integers(len(x), size=len(x))
            rows = slice(None) if role == "sibling" else drawn
            own = folder / ("judges" if role == "judge" else "ensemble") / f"{role}-{place}.ubj"
            if not own.exists():
                fitted(number, rows).save_model(own)
    return path


def read(path):
    model = xgboost.XGBClassifier()
    model.load_model(path)
    return model


def accepts(model, points):
    return model.predict_proba(points)[:, 1] >= 0.5


def by_tyrex(program, folder, names, flags, out, seed):
    """Rows of advice, in the applicants' order; the whole command's seconds."""
    command = [program, "explain", "--data", "applicants.csv", "--schema", "schema.toml"]
    command += ["--reference", "train.csv", "--model", "model.json", "--seed", str(seed)]
    command += ["--out", out, "--force", "--quiet", *flags]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode > 1:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    with (folder / out).open() as file:
        lines = [json.loads(line) for line in file]
    lines.sort(key=lambda line: line["row"])
    points = [
        [float(line[name]) for name in names] if line["status"] == "found" else None
        for line in lines
    ]
    return points, lines, seconds


def by_treecf(model, applicants, x, sd, score, args):
    import treecf

    names = [f"f{column}" for column in range(x.shape[1])]
    ranges = [treecf.Range(name, *ends) for name, *ends in zip(names, x.min(0), x.max(0))]
    explainer = treecf.Explainer(
        model.get_booster(),
        normalizers=sd,
        constraints=ranges,
        value_policy=dict.fromkeys(names, "integer"),
    )
    target = treecf.Target.probability(range=(score, 1.0))
    points, proved, start = [], 0, time.perf_counter()
    for row in applicants:
        found = explainer.explain(
            row, target=target, backend="exact", time_budget_s=args.proof_seconds, seed=args.seed
        )
        point = getattr(found, "x_cf", None)
        proved += found.proof == "optimal"
        points.append(None if point is None else np.asarray(point, float))
    return points, proved, time.perf_counter() - start


def judged(name, points, applicants, sd, judges, **more):
    """The line of a table."""
    found = [place for place, point in enumerate(points) if point is not None]
    line = {"method": name, "applicants": len(points), "found": len(found), **more}
    if found:
        after = np.array([points[place] for place in found])
        votes = np.array([accepts(model, after) for model in judges])
        change = np.abs(after - applicants[found]) / sd
        line |= {
            "validity": float(votes[:JUDGES].mean()),
            "validity_all": float(votes.mean()),
            "least": float(votes.mean(axis=0).min()),
            "cost": float(change.sum(axis=1).mean()),
            "changed": float((change > 0).sum(axis=1).mean()),
        }
        return line, dict(zip(found, votes.mean(axis=0)))
    return line, {}


def certificates(lines, shares, judges):
    """How many points are certified at the promise, and how many statements the judges contradict:
    so few of them accept that a share as stated would show it with a probability below 0.05."""
    from math import comb

    shown = {
        line["row"]: float(line["promise_shown"])
        for line in lines
        if line["status"] == "found" and line["promise_shown"] not in (None, "")
    }

    def tail(k, n, p):
        return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))

    places = {line["row"]: place for place, line in enumerate(lines)}
    below = contradicted = 0
    for row, bound in shown.items():
        share = shares[places[row]]
        below += share < bound
        contradicted += tail(round(share * judges), judges, bound) < 0.05
    certified = [row for row, bound in shown.items() if bound >= PROMISE]
    kept = [shares[places[row]] for row in certified]
    return {
        "certificates": len(shown),
        "certified": len(certified),
        "certified_least": float(min(kept, default=float("nan"))),
        "below_bound": int(below),
        "contradicted": int(contradicted),
    }


def run(name, args):
    folder = args.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    names, x, y = load(name, args.data_dir)
    order = np.random.default_rng(args.seed).permutation(len(x))
    cut = int(TRAINING_SHARE * len(x))
    train_x, train_y, test_x = x[order[:cut]], y[order[:cut]], x[order[cut:]]
    path = train(folder, names, train_x, train_y, args.seed, SETS)
    model = read(path)
    applicants = test_x[~accepts(model, test_x)][: args.applicants]
    # treecf's and tyrex' rows stay in the ranges of all rows.
    sd = np.where(train_x.std(0) > 0, train_x.std(0), 1)
    write_rows(folder / "train.csv", names, train_x, train_y)
    write_rows(folder / "applicants.csv", names, applicants)
    write_schema(folder / "schema.toml", names, x)
    judges = [
        read(each)
        for each in sorted((folder / "judges").iterdir(), key=lambda p: int(p.stem.split("-")[1]))
    ]
    print(
        f"{name}: {len(train_x)} training rows, {x.shape[1]} columns, {len(applicants)} "
        f"applicants, {len(judges)} judges",
        file=sys.stderr,
        flush=True,
    )
    table = []

    def add(line):
        table.append(line)
        print(json.dumps(line), file=sys.stderr, flush=True)

    program = str(args.tyrex)
    promise = ["--ensemble", "ensemble", "--promise", str(PROMISE), "--confidence", str(CONFIDENCE)]
    for method, flags in [("trex-e", promise), ("trex-nn", ["--method", "trex-nn"])]:
        points, lines, seconds = by_tyrex(
            program, folder, names, flags, f"{method}.jsonl", args.seed
        )
        line, shares = judged(method, points, applicants, sd, judges, seconds=seconds)
        if method == "trex-e":
            line |= certificates(lines, shares, len(judges))
        add(line)
    try:
        import treecf  # noqa: F401
    except ImportError:
        print("treecf is not installed", file=sys.stderr)
        return table
    for score in args.scores:
        points, proved, seconds = by_treecf(model, applicants, x, sd, score, args)
        line, _ = judged(
            f"treecf, score >= {score}", points, applicants, sd, judges, seconds=seconds
        )
        add(line | {"proved": proved})
    return table


def markdown(lines):
    proofs = ""
    rows = [
        "| | found | accept, 20 models | accept, 100 models | least of a point | cost | columns |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for line in lines:
        shares = [f"{100 * line[name]:.1f} %" for name in ("validity", "validity_all", "least")]
        cells = [line["method"], f"{line['found']} of {line['applicants']}", *shares]
        rows.append(
            "| " + " | ".join([*cells, f"{line['cost']:.2f}", f"{line['changed']:.1f}"]) + " |"
        )
        if "certified" in line:
            proofs = (
                f"{line['certified']} of {line['certificates']} certificates show {PROMISE}; at "
                f"least {100 * line['certified_least']:.0f} % accept each of them; "
                f"fewer than stated: {line['below_bound']}, contradicted: {line['contradicted']}"
            )
        elif "proved" in line:
            rows[-1] += f" <!-- {line['proved']} proved optimal -->"
    return "\n".join([*rows, "", proofs])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument(
        "--data", nargs="+", choices=["heloc", "german"], default=["heloc", "german"]
    )
    parser.add_argument("--applicants", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--scores", type=float, nargs="*", default=[0.5, 0.8, 0.9, 0.95], help="treecf's targets"
    )
    parser.add_argument("--proof-seconds", type=float, default=10, help="treecf's time for one row")
    parser.add_argument("--tyrex", type=Path, default=REPOSITORY / "target/release/tyrex")
    default = os.environ.get("TYREX_DATA", REPOSITORY.parent / "shared/data")
    parser.add_argument("--data-dir", type=Path, default=default)
    args = parser.parse_args()
    for name in args.data:
        lines = run(name, args)
        (args.folder / name / "lines.json").write_text(json.dumps(lines, indent=1))
        print(f"\n{name}\n\n{markdown(lines)}")


if __name__ == "__main__":
    main()
