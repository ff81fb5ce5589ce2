"""The worker's side of the protocol (bench/README.md): one timed round per "go"."""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import rows as rows_file

HIDDEN = (128, 128)
BATCH = 32
LEARNING_RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-7
ENSEMBLE = 10


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", help="file of rows and labels")
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


def glorot(rng, columns):
    """Glorot-uniform weights and zero biases, as (inputs x outputs) matrices."""
    widths = [columns, *HIDDEN, 1]
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        limit = np.sqrt(6 / (inputs + outputs))
        weights = rng.uniform(-limit, limit, size=(inputs, outputs)).astype(np.float32)
        layers.append((weights, np.zeros(outputs, np.float32)))
    return layers


def fit_quality(logits, y):
    """Mean loss and accuracy of logits with the rows along the last axis."""
    logits = np.asarray(logits, dtype=np.float64)
    loss = np.logaddexp(0, logits) - y * logits
    return {
        "loss": float(loss.mean()),
        "accuracy": float(((logits > 0) == (y > 0.5)).mean()),
    }
