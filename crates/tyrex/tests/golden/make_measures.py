"""Computes every measure on a few small networks, in double precision with numpy only.

Usage: python make_measures.py

Writes measures.json, which crates/tyrex/tests/it/measures.rs compares with. Weights, points and
offsets are numbers that single precision holds exactly.
"""

import json
import math
import pathlib

import numpy

HERE = pathlib.Path(__file__).parent
STEPS = 6
GIVEN = 0.4


def sigmoid(z):
    return 1 / (1 + numpy.exp(-z))


def normal_density(z):
    return numpy.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def normal_cumulative(z):
    return 0.5 * (1 + numpy.vectorize(math.erf)(z / math.sqrt(2)))


# Name: value, slope, largest slope.
ACTIVATIONS = {
    "identity": (lambda z: z, numpy.ones_like, 1.0),
    "relu": (lambda z: numpy.maximum(z, 0), lambda z: (z > 0).astype(float), 1.0),
    "tanh": (numpy.tanh, lambda z: 1 - numpy.tanh(z) ** 2, 1.0),
    "sigmoid": (sigmoid, lambda z: sigmoid(z) * (1 - sigmoid(z)), 0.25),
    "softplus": (lambda z: numpy.log1p(numpy.exp(z)), sigmoid, 1.0),
    "gelu": (
        lambda z: z * normal_cumulative(z),
        lambda z: normal_cumulative(z) + z * normal_density(z),
        float(normal_cumulative(math.sqrt(2)) + math.sqrt(2) * normal_density(math.sqrt(2))),
    ),
}


class Network:
    """Weights, and the score and gradient by the chain rule."""

    def __init__(self, random, dim, hidden, activation, output):
        sizes = [dim, *hidden, 1 if output in ("for", "against") else 3]
        self.activation = activation
        self.output = output
        self.layers = [
            (
                rounded(random.normal(size=(a, b)) * 1.4 / math.sqrt(a)),
                rounded(random.normal(size=b)),
            )
            for a, b in zip(sizes, sizes[1:], strict=False)
        ]

    def passes(self, x):
        """The score and the gradient at one point."""
        value, slope, _ = ACTIVATIONS[self.activation]
        slopes = []
        for weights, bias in self.layers[:-1]:
            z = x @ weights + bias
            slopes.append(slope(z))
            x = value(z)
        weights, bias = self.layers[-1]
        logits = x @ weights + bias
        if self.output in ("for", "against"):
            sign = 1 if self.output == "for" else -1
            score = sigmoid(sign * logits[0])
            gradient = numpy.array([sign * score * (1 - score)])
        else:
            shares = numpy.exp(logits) / numpy.exp(logits).sum()
            score = shares[self.output]
            gradient = score * (numpy.eye(len(shares))[self.output] - shares)
        gradient = weights @ gradient
        for (weights, _), slope_here in zip(self.layers[-2::-1], slopes[::-1], strict=True):
            gradient = weights @ (gradient * slope_here)
        return score, gradient

    def score(self, x):
        return self.passes(x)[0]

    def spectral(self):
        """The product of the spectral norms and of the largest slopes."""
        steepest = ACTIVATIONS[self.activation][2]
        product = 0.25 if self.output in ("for", "against") else math.sqrt(2) / 4
        for weights, _ in self.layers:
            product *= numpy.linalg.norm(weights, 2)
        return product * steepest ** (len(self.layers) - 1)


def rounded(numbers):
    return numbers.astype(numpy.float32).astype(float)


def measures(network, x, offsets):
    centre = network.score(x)
    scores = numpy.array([network.score(x + n) for n in offsets])
    distances = numpy.linalg.norm(offsets, axis=1)
    gradients = [network.passes(point)[1] for point in [x, *(x + offsets)]]
    path = [network.score(j / STEPS * x) for j in range(1, STEPS + 1)]

    def stability(gamma):
        return float(numpy.mean(scores - gamma * distances))

    return {
        "prediction": float(centre),
        "mean": float(scores.mean()),
        "relaxed-stability": float(numpy.mean(scores - numpy.abs(centre - scores))),
        "stability-given": stability(GIVEN),
        "stability-sound": stability(network.spectral()),
        "stability-sampled-slopes": stability(numpy.max(numpy.abs(centre - scores) / distances)),
        "stability-sampled-gradients": stability(max(numpy.linalg.norm(g) for g in gradients)),
        "mean-minus-deviation": float(scores.mean() - scores.std()),
        "path-integral": float(numpy.mean(path)),
    }


def main():
    random = numpy.random.default_rng(7)
    cases = []
    for dim, hidden, activation, output in [
        (2, [4, 3], "relu", "for"),
        (3, [5, 4], "tanh", "against"),
        (4, [6], "gelu", 2),
        (3, [], "identity", "for"),
        (5, [7, 5, 3], "softplus", 0),
        (2, [17], "sigmoid", "for"),
    ]:
        network = Network(random, dim, hidden, activation, output)
        offsets = rounded(random.normal(size=(9, dim)) * 0.3)
        points = rounded(random.normal(size=(3, dim)))
        cases.append(
            {
                "activation": activation,
                "output": output,
                "layers": [[w.ravel().tolist(), b.tolist()] for w, b in network.layers],
                "offsets": offsets.tolist(),
                "points": points.tolist(),
                "measures": [measures(network, x, offsets) for x in points],
            }
        )
    document = {"steps": STEPS, "given": GIVEN, "cases": cases}
    (HERE / "measures.json").write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
