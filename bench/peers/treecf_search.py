"""Common parts of treecf's searches: a target of 0.5 for the score, and the columns as they are."""

import worker  # first: it keeps stdout for replies
import numpy as np
import treecf

# Seconds for one proof, as its documentation uses them.
PROOF_SECONDS = 60


def main(backend, count):
    args = worker.arguments()
    problem = worker.boosted(args)
    columns = problem.x.shape[1]
    explainer = treecf.Explainer(
        problem.model, background=problem.x.astype(float), normalizers=np.ones(columns)
    )
    target = treecf.Target.probability(range=(0.5, 1.0))
    options = {"time_budget_s": PROOF_SECONDS} if backend == "exact" else {}
    proofs = {}

    def explain(factual):
        found = explainer.explain(
            factual.astype(float), target=target, backend=backend, seed=args.seed, **options
        )
        proofs[factual.tobytes()] = found.proof == "optimal"
        point = getattr(found, "x_cf", None)
        return None if point is None else np.asarray(point, np.float32)

    def more():
        return {"proved": float(np.mean(list(proofs.values())))}

    worker.serve_explainer(f"treecf {treecf.__version__}", problem, explain, count, more)
