"""The authors' recipe for T-Rex:NN: TensorFlow, eager, one query at a time.

The neighbours of a query, nearest first, are scored on fresh noise until one passes. A round
is one query, the next one each time.
"""

import time

import worker  # first: it keeps stdout for replies
import numpy as np
import tensorflow as tf
import tf_eager


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
    first = 0

    def one_round():
        nonlocal first
        start = time.perf_counter()
        point = nearest_stable(problem.factuals[first % len(problem.factuals)])
        seconds = time.perf_counter() - start
        reply = {"seconds": seconds, "units": 1, "first": first, "points": [point]}
        first += 1
        return {**reply, "sample": True}

    worker.serve(tf_eager.VERSION, one_round)


if __name__ == "__main__":
    main()
