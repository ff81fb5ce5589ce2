"""The input of the searches: a network, retrained versions of it, and rejected rows.

A folder that every engine reads:

- `rows.bin`: the training rows and their labels, `factuals.bin`: test rows that the network
  rejects rightly, `offsets.bin`: Gaussian offsets of width 0.1. All in the format of rows.py.
- `models.bin`: u32 number of models and u32 columns, then per model, first layer first, its
  weights (inputs x outputs, row by row) and biases as f32. The first model is the one to be
  explained. The others differ by their seed; only the driver looks at them, to judge.
- `search.bin`: more such models, in the same format, for searches over models; empty if no task
  needs them.
"""

import functools
import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import network
import rows

SIGMA, SAMPLES, TAU = 0.1, 1000, 0.85
EPOCHS, RETRAINED, FACTUALS = 50, 10, 200
# The search over models: their number, the share of them in the tail, and its least logit. They
# are trained briefly: their number decides the time of a search, not how well they fit.
SEARCHED, SEARCH_EPOCHS, TAIL, MARGIN = 40, 10, 0.1, 0.5


@dataclass
class Problem:
    x: np.ndarray
    y: np.ndarray
    factuals: np.ndarray
    offsets: np.ndarray
    models: list
    search: list

    @property
    def layers(self):
        """The network to be explained."""
        return self.models[0]

    @functools.cached_property
    def outliers(self):
        """The local outlier factor among the favourable rows."""
        from sklearn.neighbors import LocalOutlierFactor

        return LocalOutlierFactor(n_neighbors=20, novelty=True).fit(self.x[self.y >= 0.5])

    def accepts(self, points):
        return network.score(self.layers, points) >= 0.5


def make(limit, cache, progress, searches=False):
    """Trains the models, or takes them from an earlier run on the same rows."""
    x, y, _ = rows.load(limit)
    epochs, retrained, factuals = (EPOCHS, RETRAINED, FACTUALS) if limit is None else (10, 3, 20)
    searched = 0 if not searches else SEARCHED if limit is None else 8
    models, search = [], []
    wanted = [(models, epochs)] * (retrained + 1) + [(search, SEARCH_EPOCHS)] * searched
    for seed, (to, passes) in enumerate(wanted):
        name = hashlib.sha256(x.tobytes() + y.tobytes() + bytes([passes])).hexdigest()[:16]
        file = Path(cache) / f"model-{name}-{seed}.bin"
        if not file.is_file():
            progress(f"training model {seed + 1} of {len(wanted)}")
            file.parent.mkdir(parents=True, exist_ok=True)
            write_models(file, [network.train(x, y, seed, passes)])
        to += read_models(file)
    test_x, test_y, _ = rows.load(None, part="test")
    rejected = (network.score(models[0], test_x) < 0.5) & (test_y < 0.5)
    rng = np.random.default_rng(0)
    offsets = (SIGMA * rng.standard_normal((SAMPLES, x.shape[1]))).astype("<f4")
    return Problem(x, y, test_x[rejected][:factuals], offsets, models, search)


def write(folder, problem):
    rows.write(folder / "rows.bin", problem.x, problem.y)
    for name, points in (("factuals", problem.factuals), ("offsets", problem.offsets)):
        rows.write(folder / f"{name}.bin", points, np.zeros(len(points)))
    write_models(folder / "models.bin", problem.models)
    write_models(folder / "search.bin", problem.search, problem.x.shape[1])


def read(folder):
    folder = Path(folder)
    x, y = rows.read(folder / "rows.bin")
    factuals, offsets = (rows.read(folder / f"{name}.bin")[0] for name in ("factuals", "offsets"))
    models, search = (read_models(folder / f"{name}.bin") for name in ("models", "search"))
    return Problem(x, y, factuals, offsets, models, search)


def write_models(path, models, columns=None):
    with open(path, "wb") as file:
        columns = columns or models[0][0][0].shape[0]
        file.write(struct.pack("<II", len(models), columns))
        for layers in models:
            for weights, bias in layers:
                file.write(np.ascontiguousarray(weights, dtype="<f4").tobytes())
                file.write(np.ascontiguousarray(bias, dtype="<f4").tobytes())


def read_models(path):
    with open(path, "rb") as file:
        count, columns = struct.unpack("<II", file.read(8))
        values = np.fromfile(file, dtype="<f4")
    widths = [columns, *network.HIDDEN, 1]
    models, at = [], 0
    for _ in range(count):
        layers = []
        for inputs, outputs in zip(widths, widths[1:]):
            weights = values[at : at + inputs * outputs].reshape(inputs, outputs).copy()
            at += inputs * outputs
            layers.append((weights, values[at : at + outputs].copy()))
            at += outputs
        models.append(layers)
    if at != values.size:
        raise ValueError(f"{path}: {values.size} values, expected {at}")
    return models


def judge(reply, problem):
    """The quality of an engine's counterfactuals.

    `validity` is over the models that were trained anew, `cost` is in L2, `stability` is the mean
    relaxed stability on offsets that no engine has seen, `inliers` the share whose local outlier
    factor among the 20 nearest rows that are labelled favourable is at most 1.5.
    """
    points = reply.pop("points")
    reply.pop("times", None)
    chosen = reply.get("sample", range(len(points)))
    found = [i for i, point in enumerate(points) if point is not None]
    share = len(found) / len(points)
    if not found:
        names = ("validity", "cost", "cost_l1", "stability", "inliers")
        nothing = dict.fromkeys(names, float("nan"))
        return {"found": share, **nothing}
    after = np.array([points[i] for i in found], dtype=np.float32)
    before = problem.factuals[[chosen[i] for i in found]]
    valid = [network.score(layers, after) >= 0.5 for layers in problem.models[1:]]
    return {
        "found": share,
        "judged": len(found) * len(valid),
        "validity": float(np.mean(valid)),
        "cost": float(np.linalg.norm(after - before, axis=1).mean()),
        "cost_l1": float(np.abs(after - before).sum(axis=1).mean()),
        "stability": float(np.mean([relaxed_stability(problem.layers, x) for x in after])),
        "inliers": float(np.mean(-problem.outliers.score_samples(after) <= 1.5)),
    }


def relaxed_stability(layers, x):
    rng = np.random.default_rng(1)
    offsets = (SIGMA * rng.standard_normal((SAMPLES, len(x)))).astype(np.float32)
    scores = network.score(layers, x + offsets)
    return np.mean(scores - np.abs(network.score(layers, x[None]) - scores))
