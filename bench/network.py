"""The network of every task: d-128-128-1, ReLU, sigmoid output. numpy only."""

import numpy as np

HIDDEN = (128, 128)
BATCH = 32
LEARNING_RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-7


def glorot(rng, columns):
    """Glorot-uniform weights and zero biases, as (inputs x outputs) matrices."""
    widths = [columns, *HIDDEN, 1]
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        limit = np.sqrt(6 / (inputs + outputs))
        weights = rng.uniform(-limit, limit, size=(inputs, outputs)).astype(np.float32)
        layers.append((weights, np.zeros(outputs, np.float32)))
    return layers


def forward(layers, x):
    """The values of every layer; the last are the logits."""
    values = [x]
    *hidden, (weights, bias) = layers
    for w, b in hidden:
        values.append(np.maximum(values[-1] @ w + b, 0))
    return [*values, values[-1] @ weights + bias]


def score(layers, x):
    """The probability of the favourable class."""
    return 1 / (1 + np.exp(-forward(layers, x)[-1][:, 0]))


def gradient(layers, x, y):
    """Of the mean cross-entropy, as one vector in the order of `flat`."""
    values = forward(layers, x)
    of_sums = (1 / (1 + np.exp(-values[-1])) - y[:, None]) / np.float32(len(y))
    parts = []
    for (weights, _), below in zip(layers[::-1], values[-2::-1]):
        parts = [(below.T @ of_sums).ravel(), of_sums.sum(axis=0), *parts]
        of_sums = (of_sums @ weights.T) * (below > 0)
    return np.concatenate(parts)


def flat(layers):
    """All weights and biases as one vector, and the layers again as views of it."""
    vector = np.concatenate([part.ravel() for layer in layers for part in layer])
    views, at = [], 0
    for weights, bias in layers:
        end = at + weights.size
        views.append((vector[at:end].reshape(weights.shape), vector[end : end + bias.size]))
        at = end + bias.size
    return vector, views


def train(x, y, seed, epochs):
    """Adam with Keras' defaults, batches of 32, a fresh shuffle each epoch."""
    rng = np.random.default_rng(seed)
    vector, layers = flat(glorot(rng, x.shape[1]))
    first, second = np.zeros_like(vector), np.zeros_like(vector)
    steps = 0
    for _ in range(epochs):
        order = rng.permutation(len(y))
        for batch in np.split(order, range(BATCH, len(y), BATCH)):
            steps += 1
            rate = np.float32(LEARNING_RATE * np.sqrt(1 - BETA2**steps) / (1 - BETA1**steps))
            g = gradient(layers, x[batch], y[batch])
            first += np.float32(1 - BETA1) * (g - first)
            second += np.float32(1 - BETA2) * (g * g - second)
            vector -= rate * first / (np.sqrt(second) + np.float32(EPSILON))
    return layers
