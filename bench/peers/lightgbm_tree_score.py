"""LightGBM's scores of a model of its own: as many trees, as deep, on the same rows. It grows other
trees, so its mean score is not compared."""

import worker  # first: it keeps stdout for replies
import boosted
import lightgbm
from tasks import TASKS


def main():
    args = worker.arguments()
    problem = worker.boosted(args)
    forest = TASKS["tree-score"].forest
    model = lightgbm.LGBMClassifier(
        n_estimators=forest.trees,
        max_depth=forest.depth,
        num_leaves=2**forest.depth,
        learning_rate=boosted.RATE,
        n_jobs=args.threads,
        verbose=-1,
    )
    booster = model.fit(problem.x, problem.y).booster_
    version = f"lightgbm {lightgbm.__version__}"
    score = lambda: booster.predict(problem.x, num_threads=args.threads)  # noqa: E731
    worker.serve_scores(version, problem, score, is_same_model=False)


if __name__ == "__main__":
    main()
