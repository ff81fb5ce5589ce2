"""Forests of scikit-learn's IsolationForest, and their scores.

Usage: python make_isolation.py

Writes isolation.json: the nodes of every tree, some points with `-score_samples` and `predict`, and
the training points. All coordinates are numbers that single precision holds exactly.
"""

import json
import pathlib

import numpy
from sklearn.ensemble import IsolationForest

HERE = pathlib.Path(__file__).parent


def rounded(numbers):
    return numpy.asarray(numbers).astype(numpy.float32).astype(float)


def data_sets(random):
    """Training points, points to judge."""
    normal = random.normal
    yield normal(size=(300, 3)), 1.7 * normal(size=(20, 3))
    levels = numpy.eye(4)[random.integers(4, size=120)]
    yield (
        numpy.hstack([normal(size=(120, 2)), levels]),
        numpy.hstack([2 * normal(size=(12, 2)), levels[:12]]),
    )
    # More equal rows than a tree tells apart.
    few = normal(size=(6, 2))
    yield numpy.repeat(few, 8, axis=0), numpy.vstack([few, 3 * normal(size=(4, 2))])


def main():
    random = numpy.random.default_rng(17)
    cases = []
    for training, points in data_sets(random):
        training, points = rounded(training), rounded(points)
        forest = IsolationForest(n_estimators=30, random_state=0).fit(training)
        trees = []
        for estimator in forest.estimators_:
            tree = estimator.tree_
            nodes = zip(
                tree.feature.tolist(),
                tree.threshold.tolist(),
                tree.children_left.tolist(),
                tree.children_right.tolist(),
                tree.n_node_samples.tolist(),
            )
            trees.append([list(node) for node in nodes])
        cases.append(
            {
                "rows": int(forest.max_samples_),
                "trees": trees,
                "points": points.tolist(),
                "scores": (-forest.score_samples(points)).tolist(),
                "verdicts": forest.predict(points).tolist(),
                "training": training.tolist(),
            }
        )
    (HERE / "isolation.json").write_text(json.dumps({"cases": cases}) + "\n")


if __name__ == "__main__":
    main()
