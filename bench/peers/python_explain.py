"""The Python package in a process that has started: `Explainer.explain` and its DataFrame.

Importing the package, reading the data and the model are not in the figure; `python-process` has
them.
"""

import time

import worker  # first: it keeps stdout for replies
import explaining
import tyrex


def main():
    args = worker.arguments()
    asked = explaining.read(args.problem)
    data = tyrex.datasets.load_heloc("reference", data_dir=asked.data)
    explainer = tyrex.Explainer(asked.model, data)
    # Loads what is loaded late (pandas), and starts the threads.
    explainer.explain(**{**asked.request, "limit": 2}, progress=False).to_pandas()

    def one_round():
        start = time.perf_counter()
        advice = explainer.explain(**asked.request, progress=False)
        advice.to_pandas()
        seconds = time.perf_counter() - start
        answers = [
            (one.row, one.counterfactual, one.new_score, one.stability, one.cost_l2)
            for one in advice
        ]
        return {"seconds": seconds, **explaining.judge(answers)}

    worker.serve(f"tyrex {tyrex.__version__}, Python package", one_round)


if __name__ == "__main__":
    main()
