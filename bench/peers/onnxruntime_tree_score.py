"""onnxruntime's scores of the same trees, converted by onnxmltools."""

import worker  # first: it keeps stdout for replies
import onnxruntime
from onnxmltools import convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType


def main():
    args = worker.arguments()
    problem = worker.boosted(args)
    inputs = [("x", FloatTensorType([None, problem.x.shape[1]]))]
    converted = convert_xgboost(problem.model, initial_types=inputs)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(
        converted.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (probabilities,) = [out.name for out in session.get_outputs() if "prob" in out.name]
    score = lambda: session.run([probabilities], {"x": problem.x})[0][:, 1]  # noqa: E731
    worker.serve_scores(f"onnxruntime {onnxruntime.__version__}", problem, score)


if __name__ == "__main__":
    main()
