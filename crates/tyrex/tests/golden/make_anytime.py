"""Bounds over updates by the package confseq 0.0.11, for the tests in certificate/anytime.rs.

confseq has no mixture over constant bets; the capital is the mean of its martingales. The package
is built from source and needs a C++ compiler, so it is not among the requirements of the tests.
"""

import numpy as np
from confseq.betting import betting_mart

STAKES = (np.arange(256) + 0.5) / 256


def capital(shares: list[float], m: float) -> float:
    def last(stake: float) -> float:
        def bets(x: np.ndarray, m: float) -> np.ndarray:
            return np.full(len(x), stake / m)

        return betting_mart(np.array(shares), m, lambdas_fn_positive=bets, theta=1, trunc_scale=1)[
            -1
        ]

    return float(np.mean([last(stake) for stake in STAKES]))


for shares in ([1.0] * 12, [1.0, 0.5, 0.0], [0.982, 0.991, 1.0, 1.0, 0.991, 0.991]):
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if capital(shares, middle) >= 20 else (low, middle)
    print(shares, low)
