"""XGBoost's own scores, by its prediction in place."""

import worker  # first: it keeps stdout for replies
import xgboost


def main():
    args = worker.arguments()
    problem = worker.boosted(args)
    booster = problem.model.get_booster()
    booster.set_param({"nthread": args.threads})
    version = f"xgboost {xgboost.__version__}"
    worker.serve_scores(version, problem, lambda: booster.inplace_predict(problem.x))


if __name__ == "__main__":
    main()
