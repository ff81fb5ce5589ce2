"""JAX: relaxed stability and its gradient, one jitted call per point."""

import time

import worker  # first: it keeps stdout for replies
import jax
import jax.numpy as jnp
import numpy as np


def score(layers, x):
    *hidden, (weights, bias) = layers
    for w, b in hidden:
        x = jax.nn.relu(x @ w + b)
    return jax.nn.sigmoid((x @ weights + bias)[..., 0])


def relaxed_stability(layers, offsets, x):
    centre, scores = score(layers, x), score(layers, x + offsets)
    return jnp.mean(scores - jnp.abs(centre - scores))


def hoisted(layers, offsets):
    """The same, with the offsets' share of the first layer computed once."""
    (weights, bias), *rest = layers
    shifts = offsets @ weights

    def read(x):
        sums = x @ weights + bias
        centre, scores = (score(rest, jax.nn.relu(z)) for z in (sums, sums + shifts))
        return jnp.mean(scores - jnp.abs(centre - scores))

    return read


def main(prepare):
    args = worker.arguments()
    problem = worker.problem(args)
    layers = [tuple(map(jnp.asarray, layer)) for layer in problem.layers]
    read = jax.jit(jax.value_and_grad(prepare(layers, jnp.asarray(problem.offsets))))
    points = problem.factuals[: worker.EVALUATIONS]
    for x in points[:20]:  # compile and warm up
        jax.block_until_ready(read(x))

    def one_round():
        start = time.perf_counter()
        readings = [jax.block_until_ready(read(x)) for x in points]
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "units": len(points), **worker.summary(readings)}

    worker.serve(f"jax {jax.__version__}", one_round)


def serve_search(program, factuals):
    """Serves `program(batch)`, a jitted search of all factuals in batches, with the size that is
    fastest in the warm-up. It gives points, and whether each passed."""

    def trial(batch):
        explain = program(batch)
        jax.block_until_ready(explain(factuals[:32]))
        start = time.perf_counter()
        jax.block_until_ready(explain(factuals[:32]))
        return time.perf_counter() - start

    batch = min((1, 4, 16), key=trial)
    explain = program(batch)
    jax.block_until_ready(explain(factuals))  # compile for the number there are

    def one_round():
        start = time.perf_counter()
        points, passed = jax.block_until_ready(explain(factuals))
        seconds = time.perf_counter() - start
        points = worker.listed(np.asarray(points), np.asarray(passed))
        return {"seconds": seconds, "units": len(points), "points": points}

    worker.serve(f"jax {jax.__version__}, batches of {batch}", one_round)


def plain(layers, offsets):
    return lambda x: relaxed_stability(layers, offsets, x)


if __name__ == "__main__":
    main(plain)
