"""numpy: growing spheres over the same models, as BetaRCE searches.

Points are drawn uniformly in shells around the factual, of growing radius, until one is in the
unit cube, accepted by the model in use and by the share of search models that T-Rex:E asks for;
the nearest such point of the shell is the answer.
"""

import worker  # first: it keeps stdout for replies
import numpy as np

WIDTH, DRAWS, SHELLS = 0.05, 1000, 60


def stacked(models):
    return [tuple(np.stack(part) for part in zip(*layer)) for layer in zip(*models)]


def logits(layers, x):
    """Models x points; the model in use first."""
    (weights, bias), *hidden, (last, last_bias) = layers
    values = np.maximum(x @ weights + bias[:, None], 0)
    for w, b in hidden:
        values = np.maximum(values @ w + b[:, None], 0)
    return (values @ last + last_bias[:, None])[..., 0]


def main():
    args = worker.arguments()
    problem = worker.problem(args)
    own, layers = stacked([problem.layers]), stacked(problem.search)
    most_rejecting = worker.TAIL * len(problem.search)
    rng = np.random.default_rng(args.seed)

    def explain(factual):
        for shell in range(SHELLS):
            directions = rng.standard_normal((DRAWS, len(factual))).astype(np.float32)
            radii = WIDTH * (shell + rng.random((DRAWS, 1), dtype=np.float32))
            directions *= radii / np.linalg.norm(directions, axis=1, keepdims=True)
            points = np.clip(factual + directions, 0, 1)
            # The cheaper test first.
            points = points[logits(own, points)[0] >= 0]
            if len(points):
                rejecting = (logits(layers, points) < 0).sum(axis=0)
                points = points[rejecting <= most_rejecting]
            if len(points):
                return points[np.linalg.norm(points - factual, axis=1).argmin()]
        return None

    worker.serve_explainer(f"numpy {np.__version__}", problem, explain, 20)


if __name__ == "__main__":
    main()
