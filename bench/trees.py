"""Advice for boosted trees: tyrex beside treecf, on the same models, rows and costs.

    python bench/trees.py make FOLDER CASE      # model, rows and retrained models of a case
    python bench/trees.py run FOLDER [ROUNDS]   # both, in turn; the least time of the rounds

Cases: `small` (120 trees of depth 4, 8 columns), `wide` (300 trees of depth 6, 39 columns),
`proof` (30 trees of depth 4, 8 columns), `german` and `heloc` (the data of the catalogue, with
retrained models to search over and 20 others that judge).

Needs xgboost, onnxmltools, pandas and, for `run`, treecf (requirements-treecf.txt). Models
take numbers in standard deviations of the training rows, so both report the same cost, L1 in
standard deviations. One thread each.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
APPLICANTS = 100
SEARCH, TUNE, JUDGES = 20, 20, 20
SHAPES = {"small": (120, 4, 8), "wide": (300, 6, 39), "proof": (30, 4, 8)}


def synthetic(columns: int, rows: int = 4000) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers on different scales, and a label that depends on some of them and on pairs."""
    random = np.random.default_rng(7)
    x = random.normal(size=(rows, columns)) @ (
        np.eye(columns) + 0.3 * random.normal(size=(columns, columns)) / np.sqrt(columns)
    )
    weights = random.normal(size=columns) / np.sqrt(columns)
    logit = 2 * x @ weights + 0.8 * x[:, 0] * x[:, 1] - 0.6 * np.abs(x[:, 2]) - 0.2
    y = (random.random(rows) < 1 / (1 + np.exp(-logit))).astype(int)
    scales = 10.0 ** random.integers(-1, 4, columns)
    names = [f"x{index}" for index in range(columns)]
    return pd.DataFrame((x * scales).astype(np.float32), columns=names), y


def of_catalogue(name: str) -> tuple[pd.DataFrame, np.ndarray, str]:
    """The rows of a named data set, and its schema for a model of encoded columns."""
    data = Path(os.environ.get("TYREX_DATA", ROOT.parent / "shared" / "data"))
    frame = pd.read_csv(data / f"{name}.csv")
    label, good = ("class", "good") if name == "german" else ("RiskPerformance", "Good")
    y = (frame.pop(label) == good).astype(int).to_numpy()
    if name == "heloc":
        # Codes below 0 are no amounts; rows with all of them missing say nothing.
        kept = (frame > -9).any(axis=1)
        frame, y = frame[kept].reset_index(drop=True), y[kept.to_numpy()]
    return frame, y


def schema_of(frame: pd.DataFrame) -> str:
    lines = [
        "format_version = 1",
        '[label]\ncolumn = "y"\nfavourable = 1',
        '[split]\ncolumn = "part"\ntrain = ["train"]\ntest = ["test"]',
        '[scaling]\nmethod = "z-score"',
        '[model]\ninput = "encoded"',
    ]
    for name, column in frame.items():
        lines.append(f'[[feature]]\nname = "{name}"')
        if column.dtype.kind in "OSU" or str(column.dtype) == "str":
            lines.append('kind = "categorical"')
            lines.append(f"levels = {json.dumps(sorted(column.unique()))}")
        elif column.dtype.kind == "i":
            lines.append('kind = "integer"')
            lines.append(f"range = [{column.min()}, {column.max()}]")
        else:
            lines.append('kind = "numeric"')
    return "\n".join(lines) + "\n"


def encoded(frame: pd.DataFrame, train: np.ndarray) -> np.ndarray:
    """The columns of the schema: numbers in standard deviations, a column for each level."""
    blocks = []
    for _, column in frame.items():
        if column.dtype.kind in "if":
            numbers = column.to_numpy(dtype=np.float64)
            scaled = (numbers - numbers[train].mean()) / numbers[train].std()
            blocks.append(scaled.astype(np.float32)[:, None])
        else:
            blocks.extend((column == level).to_numpy(dtype=np.float32)[:, None] for level in sorted(column.unique()))
    return np.hstack(blocks)


def write(model, width: int, path: Path) -> None:
    from onnxmltools import convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    exported = convert_xgboost(model, initial_types=[("x", FloatTensorType([None, width]))])
    path.write_bytes(exported.SerializeToString())


def make(folder: Path, case: str) -> None:
    from xgboost import XGBClassifier

    folder.mkdir(parents=True, exist_ok=True)
    trees, depth, columns = SHAPES.get(case, (100, 4, 0))
    frame, y = synthetic(columns) if columns else of_catalogue(case)
    random = np.random.default_rng(1)
    train = np.sort(random.permutation(len(frame))[: int(0.8 * len(frame))])
    test = np.setdiff1d(np.arange(len(frame)), train)
    x = encoded(frame, train)

    def fit(rows: np.ndarray, seed: int) -> XGBClassifier:
        model = XGBClassifier(
            n_estimators=trees, max_depth=depth, learning_rate=0.1, subsample=0.8,
            random_state=seed, n_jobs=1, base_score=0.5,
        )
        return model.fit(x[rows], y[rows])

    model = fit(train, 0)
    write(model, x.shape[1], folder / "model.onnx")
    model.save_model(folder / "model.json")
    (folder / "schema.toml").write_text(schema_of(frame))
    frame.iloc[train].assign(y=y[train], part="train").to_csv(folder / "train.csv", index=False)
    rejected = test[model.predict_proba(x[test])[:, 1] < 0.45]
    rejected = rejected[: 60 if case in ("german", "heloc") else APPLICANTS]
    frame.iloc[rejected].to_csv(folder / "applicants.csv", index=False)
    np.savez(folder / "points.npz", train=x[train], applicants=x[rejected])
    if case in ("german", "heloc"):
        # Retrained on bootstraps with new seeds; the judges take part in no search.
        for name, count, first in (("search", SEARCH, 1000), ("tune", TUNE, 2000), ("judges", JUDGES, 3000)):
            own = folder / ("judges" if name == "judges" else "retrained")
            own.mkdir(exist_ok=True)
            for index in range(count):
                if (own / f"{name}-{index:03}.onnx").exists():
                    continue
                rows = np.random.default_rng(first + index).choice(train, len(train))
                write(fit(rows, first + index), x.shape[1], own / f"{name}-{index:03}.onnx")


def tyrex(folder: Path, method: str, *fields: str) -> list[dict]:
    program = ROOT / "target" / os.environ.get("TYREX_PROFILE", "release") / "examples" / "trees"
    environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
    done = subprocess.run(
        [program, folder, method, *fields], env=environment, check=True, capture_output=True, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def treecf(folder: Path, score: float, backend: str) -> list[dict]:
    import treecf

    points = np.load(folder / "points.npz")
    train = points["train"].astype(np.float64)
    sigma = np.ones(train.shape[1])
    from xgboost import XGBClassifier

    model = XGBClassifier()
    model.load_model(folder / "model.json")
    explainer = treecf.Explainer(model, background=train, normalizers=sigma)
    target = treecf.Target.probability(range=(score, 1.0))
    lines = []
    for x in points["applicants"].astype(np.float64):
        started = time.perf_counter()
        found = explainer.explain(x, target=target, backend=backend, seed=0, time_budget_s=60.0)
        line = {"seconds": time.perf_counter() - started}
        if isinstance(found, treecf.Counterfactual):
            line |= {"cost": float((np.abs(np.asarray(found.x_cf) - x) / sigma).sum()), "changed": len(found.changes), "proof": found.proof}
        lines.append(line)
    return lines


def summary(name: str, rounds: list[list[dict]]) -> None:
    seconds = np.min([[line["seconds"] for line in lines] for lines in rounds], axis=0)
    lines = rounds[0]
    found = [line for line in lines if "cost" in line]
    cost = np.array([line["cost"] for line in found])
    text = f"{name:28} found {len(found)}/{len(lines)}  median {1e3 * np.median(seconds):8.2f} ms  max {1e3 * seconds.max():8.2f} ms"
    if len(found):
        text += f"  cost mean {cost.mean():.4f} median {np.median(cost):.4f}  changed {np.mean([line['changed'] for line in found]):.2f}"
    accepted = [line["accepted"] for line in found if "accepted" in line]
    if accepted:
        text += f"  accepted by judges {100 * np.mean(accepted):.1f} %"
    print(text, flush=True)


def run(folder: Path, rounds: int) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    contenders = {
        "tyrex min-cost": lambda: tyrex(folder, "min-cost"),
        "treecf genetic": lambda: treecf(folder, 0.5, "genetic"),
    }
    results = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, once in contenders.items():
            results[name].append(once())
    for name, own in results.items():
        summary(name, own)
    ours, theirs = (results[name][0] for name in contenders)
    both = [(a["cost"], b["cost"]) for a, b in zip(ours, theirs, strict=True) if "cost" in a and "cost" in b]
    ratio = np.array([a / b for a, b in both])
    print(f"on {len(both)} rows of both: cost tyrex / treecf mean {ratio.mean():.4f}, cheaper or equal on {(ratio <= 1 + 1e-6).sum()}")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    verb, folder, *rest = sys.argv[1:]
    if verb == "make":
        make(Path(folder), rest[0])
    else:
        run(Path(folder), int(rest[0]) if rest else 3)
