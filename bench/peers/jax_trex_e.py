"""JAX: the search of T-Rex:E, jitted as a whole and vmapped over factuals.

The models' layers are stacked, so one product per layer serves all of them. The search is
tyrex's: steps to the plane on which the tail's linear model reaches the margin, then steps along
the surface to cheaper points, within a trust radius. It has no starts at data points.
"""

import worker  # first: it keeps stdout for replies
import jax
import jax.numpy as jnp
import numpy as np
from jax_stability import serve_search

HALVINGS, STEPS, RESTORATIONS, PROJECTIONS = 40, 100, 2, 6
STEP_MARGIN, SMOOTHING = 1e-3, 0.1
WORTH, PATIENCE, LEAST_RADIUS = 2e-3, 3, 1e-3


def stacked(models):
    return [tuple(jnp.asarray(np.stack(part)) for part in zip(*layer)) for layer in zip(*models)]


def logits(layers, x):
    """One logit per model, the model in use first."""
    (weights, bias), *hidden, (last, last_bias) = layers
    values = jax.nn.relu(jnp.einsum("d,mdh->mh", x, weights) + bias)
    for w, b in hidden:
        values = jax.nn.relu(jnp.einsum("mi,mio->mo", values, w) + b)
    return (jnp.einsum("mi,mio->mo", values, last) + last_bias)[:, 0]


def tail(z, temperature):
    """The smooth mean of the lowest share; `t` is found by bisection and needs no gradient."""
    count = worker.TAIL * z.shape[0]
    fixed = jax.lax.stop_gradient(z)

    def halve(_, ends):
        low, high = ends
        t = (low + high) / 2
        below = jax.nn.sigmoid((t - fixed) / temperature).sum() < count
        return jnp.where(below, t, low), jnp.where(below, high, t)

    ends = fixed.min() - 40 * temperature, fixed.max() + 40 * temperature
    t = sum(jax.lax.fori_loop(0, HALVINGS, halve, ends)) / 2
    return t - temperature * jax.nn.softplus((t - z) / temperature).sum() / count


def searcher(layers, temperature):
    def field(x):
        z = logits(layers, x)
        low = tail(z[1:], temperature)
        return jnp.where(z[0] < 0, jnp.minimum(z[0], low), low)

    read = jax.value_and_grad(field)
    aim = worker.MARGIN + STEP_MARGIN

    def step_to(origin, x, value, gradient, radius):
        """The nearest point to the origin on the plane, in the cube; within the radius."""

        def newton(_, length):
            there = origin + length * gradient
            free = (there > 0) & (there < 1)
            slope = jnp.maximum(jnp.sum(jnp.where(free, gradient**2, 0)), 1e-9)
            missing = aim - value - gradient @ (jnp.clip(there, 0, 1) - x)
            return length + jnp.maximum(missing, 0) / slope

        # The linear model is concave along this path, so the steps do not overshoot.
        length = jax.lax.fori_loop(0, PROJECTIONS, newton, 0.0)
        move = jnp.clip(origin + length * gradient, 0, 1) - x
        return x + move * jnp.minimum(1, radius / jnp.maximum(jnp.linalg.norm(move), 1e-12))

    def search(factual):
        def cost(x):
            return jnp.linalg.norm(x - factual)

        def restore(_, state):
            x, value, gradient, here, radius = state
            done = (value >= worker.MARGIN) | (cost(x) >= cost(here))
            back = step_to(x, x, value, gradient, radius)
            new = read(back)
            pick = lambda old, new: jnp.where(done, old, new)  # noqa: E731
            return pick(x, back), pick(value, new[0]), pick(gradient, new[1]), here, radius

        def goes_on(state):
            *_, radius, idle, number = state
            return (number < STEPS) & (idle < PATIENCE) & (radius >= LEAST_RADIUS)

        def step(state):
            x, value, gradient, radius, idle, number = state
            passed = value >= worker.MARGIN
            there = step_to(factual, x, value, gradient, radius)
            new = (there, *read(there))
            restored = jax.lax.fori_loop(0, RESTORATIONS, restore, (*new, x, radius))[:3]
            new = jax.tree.map(lambda a, b: jnp.where(passed, a, b), restored, new)
            passes = new[1] >= worker.MARGIN
            better = jnp.where(passed, passes & (cost(new[0]) < cost(x)), passes | (new[1] > value))
            worth = cost(new[0]) < (1 - WORTH) * cost(x)
            idle = jnp.where(passed & better, jnp.where(worth, 0, idle + 1), idle)
            shrunk = jnp.where(passed, 0.5, 0.25) * radius
            radius = jnp.where(better, 2 * radius, shrunk)
            kept = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, (x, value, gradient))
            return (*kept, radius, idle, number + 1)

        start = (factual, *read(factual), 0.25, 0, 0)
        x, value, *_ = jax.lax.while_loop(goes_on, step, start)
        return x, value >= worker.MARGIN

    return search


def main():
    args = worker.arguments()
    problem = worker.problem(args)
    layers = stacked([problem.layers, *problem.search])
    of_rows = jax.vmap(lambda x: logits(layers, x))(jnp.asarray(problem.x[:200]))
    temperature = SMOOTHING * float(of_rows[:, 1:].std(axis=1).mean())
    search = searcher(layers, temperature)
    factuals = jnp.asarray(problem.factuals)

    def program(batch):
        return jax.jit(lambda factuals: jax.lax.map(search, factuals, batch_size=batch))

    serve_search(program, factuals)


if __name__ == "__main__":
    main()
