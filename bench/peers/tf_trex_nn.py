"""The authors' recipe for T-Rex:NN: TensorFlow, eager, one query at a time.

The neighbours of a query, nearest first, are scored on fresh noise until one passes. A round
takes a few queries; the figure is per query.
"""

import time

import worker  # first: it keeps stdout for replies
import numpy as np
import tensorflow as tf
import tf_eager

QUERIES = 4


def main():
    args = worker.arguments()
    problem, model = tf_eager.setup(args)
    accepted = problem.x[model(problem.x).numpy()[:, 0] >= 0.5]

    def nearest_stable(factual):
        distances = np.linalg.norm(accepted - factual, axis=1)
        for index in np.argsort(distances, kind="stable")[: worker.NEIGHBOURS]:
            neighbour = tf.constant(accepted[index : index + 1])
            if tf_eager.relaxed_stability(model, neighbour) >= worker.TAU:
                return accepted[index].tolist()
        return None

    for _ in range(20):
        tf_eager.relaxed_stability(model, tf.constant(accepted[:1]))
    chosen = worker.sample(problem.factuals, QUERIES)

    def one_round():
        start = time.perf_counter()
        points = [nearest_stable(problem.factuals[i]) for i in chosen]
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "units": len(chosen), "sample": chosen, "points": points}

    worker.serve(tf_eager.VERSION, one_round)


if __name__ == "__main__":
    main()
