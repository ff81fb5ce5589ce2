"""NICE: the nearest accepted row; then columns are taken back, nearest to the factual first."""

from importlib.metadata import version

import worker  # first: it keeps stdout for replies
import numpy as np
from nice import NICE

FACTUALS = 100


def main():
    args = worker.arguments()
    problem = worker.boosted(args)
    nice = NICE(
        lambda points: problem.model.predict_proba(np.asarray(points, np.float32)),
        problem.x.astype(float),
        cat_feat=[],
        y_train=problem.y.astype(int),
        optimization="proximity",
        num_normalization="std",
    )

    def explain(factual):
        return np.asarray(nice.explain(factual[None].astype(float)), np.float32)[0]

    worker.serve_explainer(f"NICEx {version('NICEx')}", problem, explain, FACTUALS)


if __name__ == "__main__":
    main()
