"""The values of tests/it/statistics.rs, computed with scipy.

    python3 crates/tyrex/tests/golden/statistics.py

writes statistics.json beside this file: incomplete beta functions and quantiles, binomial
probabilities, bounds on proportions, the p-value of Hoeffding and Bentkus, Student's quantiles,
Fisher's exact test and Holm's correction, over grids that include the edges.
"""

import json
import math
from pathlib import Path

from scipy import special, stats

HERE = Path(__file__).resolve().parent

SHAPES = [0.5, 1.0, 2.5, 7.0, 32.5, 400.0, 20_000.5]
PROBABILITIES = [1e-12, 1e-6, 0.001, 0.05, 0.3, 0.5, 0.9, 0.999]
TRIALS = [1, 2, 10, 50, 59, 299, 5_000, 1_000_000]
ALPHAS = [1e-9, 0.001, 0.05, 0.1, 0.5]


def counts(n):
    return sorted({0, 1, n // 10, n // 2, n - 1, n})


def incomplete_beta():
    for a in SHAPES:
        for b in SHAPES:
            for p in PROBABILITIES:
                x = special.betaincinv(a, b, p)
                if 1e-250 < x < 1.0:
                    yield [x, a, b, special.betainc(a, b, x)]


def beta_quantile():
    for a in SHAPES:
        for b in SHAPES:
            for p in PROBABILITIES:
                x = special.betaincinv(a, b, p)
                if 1e-250 < x < 1.0:
                    yield [p, a, b, x]


def binomial():
    for n in TRIALS:
        for k in counts(n):
            for p in [0.0, 1e-6, 0.01, 0.05, 0.5, 0.95, 1.0]:
                value = stats.binom.cdf(k, n, p)
                if value == 0.0 or value > 1e-250:
                    yield [k, n, p, value]


def bounds():
    for n in TRIALS:
        for s in counts(n):
            for alpha in ALPHAS:
                lower, low = stats.beta.ppf([alpha, alpha / 2], s, n - s + 1) if s else (0, 0)
                upper, high = stats.beta.isf([alpha, alpha / 2], s + 1, n - s) if s < n else (1, 1)
                posterior = stats.beta.ppf(alpha, s + 0.5, n - s + 0.5)
                yield [s, n, alpha, lower, upper, low, high, posterior]


def hoeffding_bentkus():
    for n in [1, 10, 50, 59, 1_000]:
        for lost in counts(n) + [n / 3]:
            for level in [0.001, 0.05, 0.2, 0.7]:
                mean = lost / n
                least = min(mean, level)
                divergence = special.rel_entr(least, level)
                divergence += special.rel_entr(1.0 - least, 1.0 - level)
                bentkus = math.e * stats.binom.cdf(math.ceil(lost), n, level)
                yield [mean, n, level, min(math.exp(-n * divergence), bentkus, 1.0)]


def student():
    for degrees in [*range(1, 21), 49, 99, 1_000, 22_499, 1_000_000]:
        for alpha in ALPHAS:
            yield [alpha, degrees, stats.t.isf(alpha / 2, degrees)]


def fisher():
    for first in [0, 1, 2, 7, 40, 300, 5_000]:
        for second in [0, 1, 9, 64, 1_000, 20_000]:
            for a in counts(first) if first else [0]:
                for b in counts(second) if second else [0]:
                    p = stats.fisher_exact([[a, first - a], [b, second - b]]).pvalue
                    if p > 1e-250:
                        yield [a, first, b, second, p]


def holm():
    """Three p-values and what becomes of them, by the definition: no test is harder than one
    with a larger p-value."""
    grid = [0.0, 1e-9, 0.004, 0.02, 0.3, 1.0]
    for a in grid:
        for b in grid:
            for c in grid:
                given = [a, b, c]
                order = sorted(range(3), key=given.__getitem__)
                steps = [(3 - rank) * given[index] for rank, index in enumerate(order)]
                after = [0.0] * 3
                for rank, index in enumerate(order):
                    after[index] = min(1.0, max(steps[: rank + 1]))
                yield given + after


def main():
    tables = {
        "incomplete_beta": incomplete_beta(),
        "beta_quantile": beta_quantile(),
        "binomial": binomial(),
        "bounds": bounds(),
        "hoeffding_bentkus": hoeffding_bentkus(),
        "student": student(),
        "fisher": fisher(),
        "holm": holm(),
    }
    lines = []
    for name, rows in tables.items():
        body = ",\n".join("    " + json.dumps([float(v) for v in row]) for row in rows)
        lines.append(f'  "{name}": [\n{body}\n  ]')
    (HERE / "statistics.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
