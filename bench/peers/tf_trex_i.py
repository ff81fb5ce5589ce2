"""The authors' recipe for T-Rex:I: TensorFlow, eager, one factual at a time.

An elastic net with squared L2 cost, then unit steps up the stability, on fresh noise each,
inside a ball of radius 1 around the base. A round takes a few factuals; the figure is per
factual.
"""

import time

import worker  # first: it keeps stdout for replies
import tensorflow as tf
import tf_eager

FACTUALS = 4


def base(model, factual):
    """The nearest point that the network accepts, by FISTA with a search over the trade-off."""
    trade_off, low, high = 1e-3, 0.0, None
    best, least = None, float("inf")
    for _ in range(worker.BASE_ROUNDS):
        x = ahead = factual
        success = False
        for number in range(worker.BASE_STEPS):
            with tf.GradientTape() as tape:
                tape.watch(ahead)
                margin = 1 - 2 * model(ahead)[0, 0] + worker.BASE_MARGIN
            gradient = tape.gradient(margin, ahead)
            if margin > 0:
                gradient = trade_off * gradient + 2 * (ahead - factual)
            else:
                gradient = tf.zeros_like(ahead)
            rate = worker.BASE_RATE * (1 - number / worker.BASE_STEPS) ** 0.5
            moved = tf.clip_by_value(ahead - rate * gradient, 0, 1)
            ahead, x = moved + number / (number + 3) * (moved - x), moved
            if model(x)[0, 0] >= 0.5:
                success = True
                distance = float(tf.reduce_sum((x - factual) ** 2))
                if distance < least:
                    best, least = x, distance
        if success:
            high = trade_off
        else:
            low = trade_off
        trade_off = trade_off * 10 if high is None else (low + high) / 2
    return best


def climb(model, start):
    x = start
    for _ in range(worker.STEPS):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf_eager.relaxed_stability(model, x)
        if value >= worker.TAU:
            return x
        gradient = tape.gradient(value, x)
        x = x + worker.STEP * gradient / tf.maximum(tf.norm(gradient), 1e-12)
        x = tf.clip_by_value(start + tf.clip_by_norm(x - start, 1.0), 0, 1)
    return None


def main():
    args = worker.arguments()
    problem, model = tf_eager.setup(args)
    factuals = tf.constant(problem.factuals)

    def explain(factual):
        start = base(model, factual)
        return None if start is None else climb(model, start)

    explain(factuals[-1:])
    chosen = worker.sample(factuals, FACTUALS)

    def one_round():
        start = time.perf_counter()
        points = [explain(factuals[i : i + 1]) for i in chosen]
        seconds = time.perf_counter() - start
        points = [None if point is None else point.numpy()[0].tolist() for point in points]
        return {"seconds": seconds, "units": len(chosen), "sample": chosen, "points": points}

    worker.serve(tf_eager.VERSION, one_round)


if __name__ == "__main__":
    main()
