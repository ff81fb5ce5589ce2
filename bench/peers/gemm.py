"""Common parts of the two GEMM workers: the shapes, and the timing of one."""

import time

import numpy as np

SHAPES = [(1000, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024)]
SECONDS_PER_SHAPE = 0.1


def operands(shape):
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = rng.uniform(size=(m, k)), rng.uniform(size=(k, n))
    return a.astype(np.float32), b.astype(np.float32), np.empty((m, n), np.float32)


def best(products):
    """The highest rate over (shape, call) pairs; each call is repeated for a tenth of a second."""
    rates = {}
    for (m, k, n), product in products:
        product()
        shortest = float("inf")
        end = time.perf_counter() + SECONDS_PER_SHAPE
        while (start := time.perf_counter()) < end:
            product()
            shortest = min(shortest, time.perf_counter() - start)
        rates[f"{m}x{k}x{n}"] = 2e-9 * m * k * n / shortest
    shape = max(rates, key=rates.get)
    return {"gflops": rates[shape], "shape": shape}
