"""The input of the task `explain`: a network of tyrex, and the rejected test rows of HELOC.

A folder that every engine reads: `model.onnx`, and `explain.json` with the command line's path, the
folder of the data and the request. Answers are compared by a digest, to the last bit.
"""

import csv
import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# No limit: the command line then shows and certifies five rows only, and not every row up to the
# limit. Under `paper` rows take least, so that what comes on top of the search shows most.
REQUEST = {"protocol": "paper", "method": "trex-i", "norm": "l2", "tau": 0.85, "seed": 0}
QUICK_ROWS = 20


@dataclass
class Explaining:
    cli: str
    data: str
    model: str
    request: dict
    """The keywords of `Explainer.explain`; the command line's flags have the same names."""

    @property
    def flags(self):
        return [part for name, value in self.request.items() for part in (f"--{name}", str(value))]


def write(folder, cli, data, quick):
    """Trains the network with the command line."""
    model = str(folder / "model.onnx")
    train = [cli, "train", "--dataset", "heloc", "--data-dir", str(data), "--out", model, "--quiet"]
    subprocess.run([*train, "--protocol", REQUEST["protocol"]], check=True)
    request = {**REQUEST, "limit": QUICK_ROWS} if quick else REQUEST
    made = {"cli": cli, "data": str(data), "model": model, "request": request}
    (folder / "explain.json").write_text(json.dumps(made))


def read(folder):
    return Explaining(**json.loads((Path(folder) / "explain.json").read_text()))


# Columns of a file of advice that are neither the point nor its row, which comes first.
OTHERS = ("status", "reason")


def advice(path):
    """The answers in a file of advice, by the command line or from a DataFrame: the row, then the
    point in the columns up to the score. Those without a cell are none of it."""
    answers = []
    with open(path, newline="") as file:
        for line in csv.DictReader(file):
            row, *names = line
            names = names[: names.index("score")]
            cells = {name: line[name] for name in names if line[name] and name not in OTHERS}
            point = {name: float(cell) for name, cell in cells.items()} or None
            results = [float(line[name]) for name in ("score", "stability", "cost_l2") if point]
            answers.append((int(line[row]), point, *results))
    return answers


def judge(answers):
    """Of `(row, point by column or None, score, stability, cost)`: what engines must agree on."""
    digest = hashlib.sha256()
    costs = []
    for row, point, *results in answers:
        digest.update(f"{row} {sorted(point) if point else None}\n".encode())
        if point:
            score, stability, cost = results
            # Points and scores are single precision; texts of them are shorter than doubles.
            single = [*(point[name] for name in sorted(point)), score]
            digest.update(np.array(single, np.float32).tobytes())
            digest.update(np.array([stability, cost], np.float64).tobytes())
            costs.append(cost)
    return {
        "units": len(answers),
        "answers": digest.hexdigest(),
        "found": len(costs) / len(answers),
        "cost": float(np.mean(costs)) if costs else float("nan"),
    }
