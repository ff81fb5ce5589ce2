"""Common parts of DiCE's methods: the network as a PyTorch model, the rows as continuous features.

DiCE scales features to the unit interval itself. The rows are in it already, so two corner rows
make its scaling the identity.
"""

from importlib.metadata import version

import worker  # first: it keeps stdout for replies
import dice_ml
import numpy as np
import pandas as pd
import torch
from network import score as score_of
from torch_stability import network

# Decimals of a feature's value. DiCE would count them in the data, which are single precision, and
# its last search, for sparsity, tries them one by one: few are kind to it.
PRECISION = 2


class TwoOutputs:
    """The network with a probability for each class, as models of scikit-learn have it."""

    def __init__(self, layers):
        self.layers = layers

    def predict_proba(self, rows):
        score = score_of(self.layers, np.asarray(rows, dtype=np.float32))
        return np.stack([1 - score, score], axis=1)

    def predict(self, rows):
        return (self.predict_proba(rows)[:, 1] >= 0.5).astype(int)


def explainer(problem, method):
    columns = problem.x.shape[1]
    names = [f"x{number}" for number in range(columns)]
    x = np.concatenate([problem.x, np.zeros((1, columns)), np.ones((1, columns))])
    table = pd.DataFrame(x, columns=names)
    table["accepted"] = np.concatenate([problem.y, [0, 1]]).astype(int)
    data = dice_ml.Data(
        dataframe=table,
        continuous_features=names,
        outcome_name="accepted",
        continuous_features_precision=dict.fromkeys(names, PRECISION),
    )
    if method == "kdtree":
        # This method refuses a network with one output.
        model = dice_ml.Model(model=TwoOutputs(problem.layers), backend="sklearn")
    else:
        # Without the last module, which drops the column of the one output.
        module = network(problem.layers)[:-1]
        model = dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")
    return dice_ml.Dice(data, model, method=method), names


def main(method, count, options):
    args = worker.arguments()
    torch.set_num_threads(args.threads)
    problem = worker.problem(args)
    dice, names = explainer(problem, method)

    def explain(factual):
        query = pd.DataFrame([factual.astype(float)], columns=names)
        found = dice.generate_counterfactuals(
            query, total_CFs=1, desired_class=1, verbose=False, **options
        ).cf_examples_list[0]
        table = found.final_cfs_df_sparse
        if table is None or len(table) == 0:
            return None
        return table[names].to_numpy(np.float32)[0]

    versions = f"dice-ml {version('dice-ml')}, torch {torch.__version__}"
    worker.serve_explainer(versions, problem, explain, count)
