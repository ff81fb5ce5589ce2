"""JAX: one jitted epoch, `lax.scan` over the batches, Adam by hand."""

import time

import worker  # first: it keeps stdout for replies
import jax
import jax.numpy as jnp
import numpy as np


def logits(layers, x):
    *hidden, (weights, bias) = layers
    for w, b in hidden:
        x = jax.nn.relu(x @ w + b)
    return (x @ weights + bias)[:, 0]


def loss(layers, x, y):
    z = logits(layers, x)
    return jnp.mean(jnp.logaddexp(0.0, z) - y * z)


def step(state, batch):
    layers, first, second, count = state
    gradient = jax.grad(loss)(layers, *batch)
    count = count + 1
    rate = worker.LEARNING_RATE * jnp.sqrt(1 - worker.BETA2**count) / (1 - worker.BETA1**count)
    each = jax.tree.map
    first = each(lambda m, g: m + (1 - worker.BETA1) * (g - m), first, gradient)
    second = each(lambda v, g: v + (1 - worker.BETA2) * (g * g - v), second, gradient)
    layers = each(
        lambda p, m, v: p - rate * m / (jnp.sqrt(v) + worker.EPSILON), layers, first, second
    )
    return (layers, first, second, count), None


def epoch(state, order, x, y):
    """All full batches in one scan, then the partial one."""
    x, y = x[order], y[order]
    full = len(order) // worker.BATCH
    cut = full * worker.BATCH
    batches = (
        x[:cut].reshape(full, worker.BATCH, x.shape[1]),
        y[:cut].reshape(full, worker.BATCH),
    )
    state, _ = jax.lax.scan(step, state, batches)
    if cut < len(order):
        state, _ = step(state, (x[cut:], y[cut:]))
    return state


def initial(seed, columns):
    layers = [
        tuple(map(jnp.asarray, layer))
        for layer in worker.glorot(np.random.default_rng(seed), columns)
    ]
    zeros = jax.tree.map(jnp.zeros_like, layers)
    return layers, zeros, jax.tree.map(jnp.zeros_like, layers), jnp.float32(0)


def main(models):
    """Trains `models` networks at once; more than one are batched by `vmap`."""
    args = worker.arguments()
    x_host, y_host = worker.training_rows(args)
    x, y = jnp.asarray(x_host), jnp.asarray(y_host)
    rng = np.random.default_rng(args.seed)

    if models == 1:
        state, train, predict = initial(args.seed, x.shape[1]), epoch, logits
    else:
        members = [initial(args.seed + i, x.shape[1]) for i in range(models)]
        state = jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
        train = jax.vmap(epoch, in_axes=(0, 0, None, None))
        predict = jax.vmap(logits, in_axes=(0, None))

    train = jax.jit(train, donate_argnums=0)
    predict = jax.jit(predict)

    def orders():
        drawn = [rng.permutation(len(y_host)).astype(np.int32) for _ in range(models)]
        return drawn[0] if models == 1 else np.stack(drawn)

    spare = jax.tree.map(jnp.copy, state)
    for _ in range(2):  # compile and warm up on a copy
        spare = jax.block_until_ready(train(spare, orders(), x, y))
    jax.block_until_ready(predict(state[0], x))
    del spare

    def one_round():
        nonlocal state
        start = time.perf_counter()
        state = jax.block_until_ready(train(state, orders(), x, y))
        seconds = time.perf_counter() - start
        quality = worker.fit_quality(predict(state[0], x), y_host)
        return {"seconds": seconds, "units": models, "steps": int(state[3].min()), **quality}

    worker.serve(f"jax {jax.__version__}", one_round)


if __name__ == "__main__":
    main(models=1)
