"""JAX: T-Rex:I, jitted as a whole and vmapped over factuals.

The base is the authors' (elastic net with squared L2 cost), for all factuals at once. The
climb takes batches of factuals; the size that is fastest in the warm-up is taken.
"""

import worker  # first: it keeps stdout for replies
import jax
import jax.numpy as jnp
from jax_stability import hoisted, score, serve_search


def base(layers, factual):
    """The nearest point that the network accepts, by FISTA with a search over the trade-off."""

    def loss(x, trade_off):
        margin = 1 - 2 * score(layers, x) + worker.BASE_MARGIN
        distance = jnp.sum((x - factual) ** 2)
        return jnp.where(margin > 0, trade_off * margin + distance, 0.0)

    def step(state, number):
        x, ahead, trade_off, best, least = state
        share = number / worker.BASE_STEPS
        rate = worker.BASE_RATE * jnp.sqrt(1 - share)
        moved = jnp.clip(ahead - rate * jax.grad(loss)(ahead, trade_off), 0, 1)
        ahead = moved + number / (number + 3) * (moved - x)
        distance = jnp.sum((moved - factual) ** 2)
        better = (score(layers, moved) >= 0.5) & (distance < least)
        best, least = jnp.where(better, moved, best), jnp.where(better, distance, least)
        return (moved, ahead, trade_off, best, least), None

    def search(state, _):
        trade_off, low, high, best, least = state
        start = (factual, factual, trade_off, factual, jnp.inf)
        (*_, found, distance), _ = jax.lax.scan(step, start, jnp.arange(worker.BASE_STEPS))
        success = jnp.isfinite(distance)
        low, high = jnp.where(success, low, trade_off), jnp.where(success, trade_off, high)
        trade_off = jnp.where(jnp.isfinite(high), (low + high) / 2, trade_off * 10)
        better = distance < least
        best, least = jnp.where(better, found, best), jnp.where(better, distance, least)
        return (trade_off, low, high, best, least), None

    start = (1e-3, 0.0, jnp.inf, factual, jnp.inf)
    (*_, best, least), _ = jax.lax.scan(search, start, None, length=worker.BASE_ROUNDS)
    return best, jnp.isfinite(least)


def climber(layers, offsets):
    """Unit steps up the stability until it reaches tau."""
    read = jax.value_and_grad(hoisted(layers, offsets))

    def climb(start):
        def goes_on(state):
            _, value, _, number = state
            return (value < worker.TAU) & (number < worker.STEPS)

        def step(state):
            x, _, gradient, number = state
            length = jnp.maximum(jnp.linalg.norm(gradient), 1e-12)
            x = jnp.clip(x + worker.STEP * gradient / length, 0, 1)
            return (x, *read(x), number + 1)

        x, value, _, _ = jax.lax.while_loop(goes_on, step, (start, *read(start), 0))
        return x, value >= worker.TAU

    return climb


def main():
    args = worker.arguments()
    problem = worker.problem(args)
    layers = [tuple(map(jnp.asarray, layer)) for layer in problem.layers]
    climb = climber(layers, jnp.asarray(problem.offsets))
    factuals = jnp.asarray(problem.factuals)

    def program(batch):
        def explain(factuals):
            bases, have_base = jax.vmap(lambda x: base(layers, x))(factuals)
            points, passed = jax.lax.map(climb, bases, batch_size=batch)
            return points, passed & have_base

        return jax.jit(explain)

    serve_search(program, factuals)


if __name__ == "__main__":
    main()
