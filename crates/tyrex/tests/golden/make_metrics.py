"""The values of tests/it/metrics.rs, computed with scikit-learn and scipy.

Usage: python make_metrics.py

Writes metrics.json: local outlier factors and their verdicts, mean distances to neighbours,
Mahalanobis' distances, kernel densities and median absolute deviations on small data sets.
All coordinates are numbers that single precision holds exactly.

Where points tie for the last place among the neighbours, scikit-learn takes any of them. So
every data set is judged again in another order, and must give the same numbers.
"""

import json
import pathlib
import warnings

import numpy
from scipy.special import logsumexp
from scipy.stats import median_abs_deviation
from sklearn.covariance import EmpiricalCovariance
from sklearn.neighbors import KernelDensity, LocalOutlierFactor, NearestNeighbors

HERE = pathlib.Path(__file__).parent
NEIGHBOURS = [1, 5, 20]


def rounded(numbers):
    return numpy.asarray(numbers).astype(numpy.float32).astype(float)


def one_hot(random, rows, levels):
    return numpy.eye(levels)[random.integers(levels, size=rows)]


def data_sets(random):
    """Name, training points, points to judge."""
    normal = random.normal

    yield "random", normal(size=(150, 3)), 1.5 * normal(size=(25, 3))
    yield "wide", normal(size=(100, 24)), 1.2 * normal(size=(10, 24))

    dense, sparse = 0.05 * normal(size=(50, 2)), [4, 4] + normal(size=(50, 2))
    between = random.uniform(-1, 6, size=(25, 2))
    yield "clusters", numpy.vstack([dense, sparse]), numpy.vstack([between, dense[:3]])

    # Some points 25 times: more often than there are neighbours.
    once = normal(size=(40, 4))
    often = numpy.vstack([once, numpy.repeat(once[:4], 24, axis=0), once[4:12]])
    near = once[:6] + 0.01 * normal(size=(6, 4))
    yield "duplicates", often, numpy.vstack([once[:8], near, normal(size=(6, 4))])

    # Eighteen columns, two of them numbers. These are multiples of 2^-10, so that scikit-learn's
    # products of rows are exact and duplicates are at distance 0 for it as well.
    def encoded(rows):
        numbers = random.integers(1024, size=(rows, 2)) / 1024
        return numpy.hstack([numbers, one_hot(random, rows, 6), one_hot(random, rows, 10)])

    rows = encoded(70)
    relaxed = encoded(8)
    relaxed[:, 2:] = rounded(0.8 * relaxed[:, 2:] + 0.02)
    yield "one-hot", numpy.vstack([rows, rows[:20], rows[:5]]), numpy.vstack([rows[:4], relaxed])

    for count in [2, 3, 6]:
        yield f"tiny-{count}", normal(size=(count, 2)), normal(size=(4, 2))


def outlier_factors(training, points):
    answers = {}
    for count in NEIGHBOURS:
        model = LocalOutlierFactor(n_neighbors=count, novelty=True).fit(training)
        answers[count] = {
            "factors": (-model.score_samples(points)).tolist(),
            "verdicts": model.predict(points).tolist(),
        }
    return answers


def check_order(random, training, points, answers):
    """Fails if another order of the training points gives other factors."""
    again = outlier_factors(training[random.permutation(len(training))], points)
    for count in NEIGHBOURS:
        numpy.testing.assert_allclose(
            again[count]["factors"], answers[count]["factors"], rtol=1e-9, atol=1e-12
        )


def log_densities(training, points, width):
    """The formula, since KernelDensity's trees stop at about 1e-6 whatever they are asked for."""
    squares = ((points[:, None] - training) ** 2).sum(axis=2)
    kernels = logsumexp(-squares / (2 * width**2), axis=1) - numpy.log(len(training))
    answers = kernels - training.shape[1] / 2 * numpy.log(2 * numpy.pi * width**2)
    density = KernelDensity(bandwidth=width, rtol=1e-12).fit(training)
    numpy.testing.assert_allclose(density.score_samples(points), answers, rtol=1e-6)
    return answers


def main():
    random = numpy.random.default_rng(11)
    warnings.simplefilter("ignore")  # more neighbours asked for than there are points
    cases = []
    for name, training, points in data_sets(random):
        training, points = rounded(training), rounded(points)
        answers = outlier_factors(training, points)
        check_order(random, training, points, answers)
        near = min(5, len(training) - 1)
        distances, _ = NearestNeighbors(n_neighbors=near).fit(training).kneighbors(points)
        covariance = EmpiricalCovariance().fit(training)
        scale = float(numpy.sqrt(training.var(axis=0).mean()))
        width = scale * KernelDensity(bandwidth="scott").fit(training).bandwidth_
        cases.append(
            {
                "name": name,
                "training": training.tolist(),
                "points": points.tolist(),
                "outlier": answers,
                "neighbour_distances": distances.mean(axis=1).tolist(),
                "mahalanobis": numpy.sqrt(covariance.mahalanobis(points)).tolist(),
                "rank": int(numpy.linalg.matrix_rank(covariance.covariance_)),
                "bandwidth": width,
                "log_densities": log_densities(training, points, width).tolist(),
                "median_deviations": median_abs_deviation(training, axis=0).tolist(),
            }
        )
    (HERE / "metrics.json").write_text(json.dumps({"cases": cases}) + "\n")


if __name__ == "__main__":
    main()
