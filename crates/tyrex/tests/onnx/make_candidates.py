"""Candidates of an audit from the real packages, and what onnxruntime says of promised rows.

    python make_candidates.py FOLDER

reads FOLDER/promised.csv, trains scikit-learn pipelines and a PyTorch network on people of the
same kind, writes FOLDER/NAME.onnx for each and FOLDER/scores.json: onnxruntime's probability of
the favourable class for every promised row.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd

PURPOSES = ["car", "house", "school"]


def people(rows, seed):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(18, 80, rows).astype(np.float32),
            "income": random.uniform(0, 10, rows).astype(np.float32),
            "purpose": random.choice(PURPOSES, rows),
        }
    )


def labels(frame, seed):
    noise = np.random.default_rng(seed).normal(0, 1.5, len(frame))
    worth = frame["income"] + (frame["purpose"] == "house") * 2 - (frame["age"] < 30) * 2
    return (worth + noise > 5).astype(np.int64).to_numpy()


def columns(frame):
    return {
        name: frame[name].to_numpy(dtype=object if name == "purpose" else np.float32)[:, None]
        for name in frame
    }


def encoded(frame):
    """As tyrex encodes a row without scaling: numbers as they are, a column per level."""
    levels = [(frame["purpose"] == purpose).to_numpy() for purpose in PURPOSES]
    return np.column_stack([frame["age"], frame["income"], *levels]).astype(np.float32)


def sklearn_models(folder, train, y):
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    types = [
        ("age", FloatTensorType([None, 1])),
        ("income", FloatTensorType([None, 1])),
        ("purpose", StringTensorType([None, 1])),
    ]
    endings = {
        "logistic": LogisticRegression(max_iter=500),
        "forest": RandomForestClassifier(15, max_depth=6, random_state=0),
    }
    for name, ending in endings.items():
        encoder = ColumnTransformer(
            [
                ("numbers", StandardScaler(), ["age", "income"]),
                ("texts", OneHotEncoder(sparse_output=False), ["purpose"]),
            ]
        )
        model = make_pipeline(encoder, ending).fit(train, y)
        options = {id(model): {"zipmap": False}}
        exported = to_onnx(model, initial_types=types, options=options)
        (folder / f"{name}.onnx").write_bytes(exported.SerializeToString())
    return list(endings)


def torch_model(folder, train, y):
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
    x, y = torch.from_numpy(encoded(train)), torch.from_numpy(y).float()[:, None]
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(300):
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy(model(x), y).backward()
        optimiser.step()
    model.eval()
    torch.onnx.export(
        model,
        (torch.zeros(2, 5),),
        str(folder / "torch.onnx"),
        input_names=["x"],
        output_names=["probability"],
        dynamic_axes={"x": {0: "rows"}},
        dynamo=False,
    )


def scores(path, feed):
    run = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = {output.name for output in run.get_outputs()}
    output = "probabilities" if "probabilities" in names else "probability"
    return [float(p) for p in np.asarray(run.run([output], feed)[0])[:, -1]]


def main(folder):
    warnings.filterwarnings("ignore")
    folder = Path(folder)
    train = people(600, 1)
    y = labels(train, 2)
    promised = pd.read_csv(folder / "promised.csv")[["age", "income", "purpose"]]
    answers = {
        name: scores(folder / f"{name}.onnx", columns(promised))
        for name in sklearn_models(folder, train, y)
    }
    torch_model(folder, train, y)
    answers["torch"] = scores(folder / "torch.onnx", {"x": encoded(promised)})
    (folder / "scores.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1])
