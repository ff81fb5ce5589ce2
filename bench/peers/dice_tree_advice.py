"""DiCE's genetic method for models without gradients, with its defaults."""

from importlib.metadata import version

import worker  # first: it keeps stdout for replies
import dice_ml
import numpy as np
import pandas as pd

FACTUALS = 4


def main():
    args = worker.arguments()
    problem = worker.boosted(args)
    names = [f"x{number}" for number in range(problem.x.shape[1])]
    table = pd.DataFrame(problem.x.astype(float), columns=names)
    table["accepted"] = problem.y.astype(int)
    data = dice_ml.Data(dataframe=table, continuous_features=names, outcome_name="accepted")
    dice = dice_ml.Dice(data, dice_ml.Model(model=problem.model, backend="sklearn"), "genetic")

    def explain(factual):
        query = pd.DataFrame([factual.astype(float)], columns=names)
        found = dice.generate_counterfactuals(
            query, total_CFs=1, desired_class=1, verbose=False
        ).cf_examples_list[0]
        table = found.final_cfs_df_sparse
        if table is None or len(table) == 0:
            return None
        return table[names].astype(float).to_numpy(np.float32)[0]

    worker.serve_explainer(f"dice-ml {version('dice-ml')}", problem, explain, FACTUALS)


if __name__ == "__main__":
    main()
