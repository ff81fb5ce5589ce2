"""Models that were retrained with the real packages, and what onnxruntime says of some rows.

    python make_retrained.py FOLDER

reads FOLDER/promised.csv and writes FOLDER/train.csv, the rows that train, and folders of model
files: `pipelines` (scikit-learn, each with scales of its own bootstrap), `networks` (PyTorch, of
several shapes, from other weights) and `trees` (XGBoost and LightGBM). FOLDER/NAME.onnx is the
model in use of each, FOLDER/unlike.onnx a network that was hardly trained, and FOLDER/scores.json
has onnxruntime's probability of the favourable class for every promised row, by file.
"""

import json
import sys
import warnings
from pathlib import Path

import make_candidates as common
import numpy as np
import pandas as pd

PIPELINES = 75
NETWORKS = 16
TREES = 24


def pipeline(train, y):
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    encoder = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["age", "income"]),
            ("texts", OneHotEncoder(sparse_output=False), ["purpose"]),
        ]
    )
    return make_pipeline(encoder, LogisticRegression(max_iter=500)).fit(train, y)


def write_pipeline(model, path):
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    types = [
        ("age", FloatTensorType([None, 1])),
        ("income", FloatTensorType([None, 1])),
        ("purpose", StringTensorType([None, 1])),
    ]
    exported = to_onnx(model, initial_types=types, options={id(model): {"zipmap": False}})
    path.write_bytes(exported.SerializeToString())


def write_network(train, y, seed, path, steps=120):
    import torch
    from torch import nn

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    width = [8, 12, 16][seed % 3]
    layers = [nn.Linear(5, width), nn.Tanh(), nn.Linear(width, 1), nn.Sigmoid()]
    model = nn.Sequential(*layers)
    x, y = torch.from_numpy(common.encoded(train)), torch.from_numpy(y).float()[:, None]
    # The numbers of people are far from 0; the network takes them as they are.
    scale = torch.tensor([1 / 20, 1 / 3, 1, 1, 1])
    with torch.no_grad():
        model[0].weight *= scale
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy(model(x), y).backward()
        optimiser.step()
    model.eval()
    torch.onnx.export(
        model,
        (torch.zeros(2, 5),),
        str(path),
        input_names=["x"],
        output_names=["probability"],
        dynamic_axes={"x": {0: "rows"}},
        dynamo=False,
    )


def write_trees(train, y, seed, path):
    from onnxmltools import convert_lightgbm, convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    x = common.encoded(train)
    types = [("x", FloatTensorType([None, x.shape[1]]))]
    if seed % 2:
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=20, num_leaves=8, verbose=-1, random_state=seed)
        exported = convert_lightgbm(model.fit(x, y), initial_types=types, zipmap=False)
    else:
        from xgboost import XGBClassifier

        model = XGBClassifier(n_estimators=20, max_depth=3, random_state=seed)
        exported = convert_xgboost(model.fit(x, y), initial_types=types)
    path.write_bytes(exported.SerializeToString())


def main(folder):
    warnings.filterwarnings("ignore")
    folder = Path(folder)
    train = common.people(600, 1)
    y = common.labels(train, 2)
    train.assign(paid=y).to_csv(folder / "train.csv", index=False)
    promised = pd.read_csv(folder / "promised.csv")[["age", "income", "purpose"]]
    for name in ["pipelines", "networks", "trees"]:
        (folder / name).mkdir()

    def rows(seed):
        chosen = np.random.default_rng(seed).integers(0, len(train), len(train))
        return train.iloc[chosen], y[chosen]

    write_pipeline(pipeline(train, y), folder / "pipelines.onnx")
    for seed in range(PIPELINES):
        write_pipeline(pipeline(*rows(seed)), folder / "pipelines" / f"bootstrap-{seed}.onnx")
    write_network(train, y, 0, folder / "networks.onnx")
    for seed in range(1, NETWORKS + 1):
        write_network(train, y, seed, folder / "networks" / f"network{seed:02}.onnx")
    write_network(train, y, 0, folder / "unlike.onnx", steps=4)
    write_trees(train, y, 0, folder / "trees.onnx")
    for seed in range(1, TREES + 1):
        write_trees(*rows(seed), seed, folder / "trees" / f"trees-{seed:02}.onnx")
    answers = {}
    for path in sorted(folder.rglob("*.onnx")):
        raw = "pipelines" in path.as_posix()
        feed = common.columns(promised) if raw else {"x": common.encoded(promised)}
        answers[path.relative_to(folder).as_posix()] = common.scores(path, feed)
    (folder / "scores.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1])
