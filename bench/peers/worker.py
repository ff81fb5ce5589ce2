"""The worker's side of the protocol (bench/README.md): one timed round per "go"."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import boosted as boosted_folder
import problem as problem_folder
import rows as rows_file
from network import BATCH, BETA1, BETA2, EPSILON, HIDDEN, LEARNING_RATE, glorot  # noqa: F401
from problem import MARGIN, SAMPLES, SIGMA, TAIL, TAU  # noqa: F401

ENSEMBLE = 10
EVALUATIONS = 100

# T-Rex:I as the authors run it: unit steps up the stability, from their base.
STEP, STEPS = 0.01, 200
BASE_ROUNDS, BASE_STEPS, BASE_RATE, BASE_MARGIN = 9, 60, 1e-3, 0.5
# T-Rex:NN as in the paper: so many of the nearest accepted rows are tested.
NEIGHBOURS = 1000


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", help="file of rows and labels")
    parser.add_argument("--problem", help="folder with a network and what to explain")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def claim_stdout():
    """Keeps stdout for replies: whatever a library prints goes to stderr."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return replies


REPLIES = claim_stdout()


def reply(**fields):
    print(json.dumps(fields), file=REPLIES, flush=True)


def wait_for_go():
    """True when another round is asked for, False when the driver has hung up."""
    return sys.stdin.readline().strip() == "go"


def serve(version, round_):
    """Says ready, then answers every "go" with the fields that `round_()` returns."""
    reply(ready=True, version=version)
    while wait_for_go():
        reply(**round_())


def training_rows(args):
    return rows_file.read(args.rows)


def problem(args):
    return problem_folder.read(args.problem)


def boosted(args):
    return boosted_folder.read(args.problem)


def fit_quality(logits, y):
    """Mean loss and accuracy of logits with the rows along the last axis."""
    logits = np.asarray(logits, dtype=np.float64)
    loss = np.logaddexp(0, logits) - y * logits
    return {
        "loss": float(loss.mean()),
        "accuracy": float(((logits > 0) == (y > 0.5)).mean()),
    }


def sample(factuals, count):
    """The numbers of a few factuals, spread evenly: for an engine too slow for all."""
    count = min(count, len(factuals))
    return [number * len(factuals) // count for number in range(count)]


def summary(readings):
    """Means of stabilities and of their gradients' norms."""
    return {
        "value": float(np.mean([value for value, _ in readings])),
        "gradient": float(np.mean([np.linalg.norm(gradient) for _, gradient in readings])),
    }


def listed(points, found):
    """One list of coordinates per factual, or None where nothing was found."""
    return [point.tolist() if ok else None for point, ok in zip(points, found)]


def serve_scores(version, problem, score, is_same_model=True):
    """Serves the scores of all training rows."""

    def one_round():
        start = time.perf_counter()
        scores = score()
        seconds = time.perf_counter() - start
        mean = {"mean": float(np.mean(scores, dtype=np.float64))} if is_same_model else {}
        return {"seconds": seconds, "units": len(problem.x), **mean}

    one_round()
    serve(version, one_round)


def serve_explainer(versions, problem, explain, count, more=dict):
    """Serves `explain(factual) -> point or None`, for `count` factuals spread evenly. A point that
    the model rejects counts as not found. `more()` are further fields of the reply."""
    chosen = sample(problem.factuals, count)

    def one_round():
        points, times = [], []
        for number in chosen:
            start = time.perf_counter()
            points.append(explain(problem.factuals[number]))
            times.append(time.perf_counter() - start)
        points = [
            point.tolist() if point is not None and problem.accepts(point[None])[0] else None
            for point in points
        ]
        sampled = {"sample": chosen} if len(chosen) < len(problem.factuals) else {}
        fields = {"units": len(chosen), **sampled, "points": points, "times": times, **more()}
        return {"seconds": sum(times), **fields}

    explain(problem.factuals[-1])
    serve(versions, one_round)
