"""Trains small models with the real packages, exports them, and records what onnxruntime says.

    python make_models.py FOLDER

writes FOLDER/NAME.onnx for every model and FOLDER/cases.json, a list with one entry per case:
the model file, how to import it, 1000 rows of input, and onnxruntime's probability of the
favourable class for each row.

    python make_models.py --evaluate ROWS.json ANSWERS.json MODEL.onnx...

evaluates models that tyrex wrote (one float matrix in, `probability` and `logits` out).
"""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

ROWS = 1000
COLUMNS = 6


def runtime(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z.astype(np.float64)))


def softmax(z):
    z = z.astype(np.float64)
    shares = np.exp(z - z.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


class Cases:
    """Collects models with their rows and onnxruntime's answers."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.cases = []

    def path(self, name):
        return self.folder / f"{name}.onnx"

    def add(
        self, name, inputs, output, favourable=None, logits=False, log=False, model=None, kind="mlp"
    ):
        """`inputs`: a matrix for a model with one input, or a dict from input name to column(s).

        `output` is the name of the output that holds the scores, as onnxruntime knows it.
        """
        path = self.path(name)
        if model is not None:
            path.write_bytes(model.SerializeToString())
        run = runtime(path)
        names = [i.name for i in run.get_inputs()]
        feed = inputs if isinstance(inputs, dict) else {names[0]: inputs}
        scores = run.run([output], feed)[0]
        if isinstance(scores, list):  # ZipMap: one dictionary per row, keys in class order
            scores = np.array([list(row.values()) for row in scores], dtype=np.float32)
        scores = np.asarray(scores)
        if scores.ndim == 1:
            scores = scores[:, None]
        if logits:
            scores = sigmoid(scores) if scores.shape[1] == 1 else softmax(scores)
        if log:
            scores = np.exp(scores.astype(np.float64))
        column = favourable if favourable is not None else scores.shape[1] - 1
        columns = []
        for input_name in names:
            values = feed[input_name]
            values = values[:, None] if values.ndim == 1 else values
            columns.extend(
                [cell if cell == cell else "nan" for cell in column] for column in values.T.tolist()
            )
        graph = onnx.load(path, load_external_data=False)
        operators = sorted({node.op_type for node in graph.graph.node})
        self.cases.append(
            {
                "name": name,
                "file": path.name,
                "kind": kind,
                "operators": operators,
                "output": output,
                "favourable": favourable,
                "logits": logits,
                "columns": columns,
                "expected": [float(p) for p in scores[:, column]],
            }
        )

    def write(self):
        (self.folder / "cases.json").write_text(json.dumps(self.cases))


def numbers(seed=0, columns=COLUMNS, rows=ROWS):
    """Rows inside and well outside the range the models are trained on."""
    return np.random.default_rng(seed).normal(0.0, 2.0, size=(rows, columns)).astype(np.float32)


def labels(x, classes=2):
    score = x[:, 0] - 0.7 * x[:, 1] + 0.3 * x[:, 2] * x[:, 3]
    edges = np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1])
    return np.searchsorted(edges, score).astype(np.int64)


# ------------------------------------------------------------------------------------------ PyTorch


def torch_models(cases):
    import torch
    from torch import nn

    activations = {
        "relu": nn.ReLU,
        "leaky-relu": lambda: nn.LeakyReLU(0.07),
        "elu": lambda: nn.ELU(0.8),
        "selu": nn.SELU,
        "gelu": nn.GELU,
        "gelu-tanh": lambda: nn.GELU(approximate="tanh"),
        "tanh": nn.Tanh,
        "sigmoid": nn.Sigmoid,
        "softplus": nn.Softplus,
        "silu": nn.SiLU,
    }

    def export(name, model, exporter, **rest):
        torch.manual_seed(len(name))
        model.eval()
        example = (torch.zeros(2, COLUMNS),)
        if exporter == "torchscript":
            torch.onnx.export(
                model,
                example,
                cases.path(name),
                dynamo=False,
                input_names=["x"],
                output_names=["y"],
                dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
            )
        else:
            torch.onnx.export(
                model,
                example,
                cases.path(name),
                dynamo=True,
                verbose=False,
                input_names=["x"],
                output_names=["y"],
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                **rest,
            )

    for exporter in ["torchscript", "dynamo"]:
        for activation, make in activations.items():
            torch.manual_seed(1)
            model = nn.Sequential(
                nn.Linear(COLUMNS, 16),
                make(),
                nn.Linear(16, 8),
                make(),
                nn.Linear(8, 1),
                nn.Sigmoid(),
            )
            name = f"torch-{exporter}-{activation}"
            export(name, model, exporter)
            cases.add(name, numbers(1), "y")

        torch.manual_seed(2)
        body = [nn.Linear(COLUMNS, 12), nn.ReLU(), nn.Linear(12, 3)]
        for ending, layers, options in [
            ("logit", [nn.Linear(COLUMNS, 12), nn.Tanh(), nn.Linear(12, 1)], {"logits": True}),
            ("logits", body, {"logits": True, "favourable": 2}),
            ("softmax", [*body, nn.Softmax(dim=1)], {"favourable": 1}),
            ("log-softmax", [*body, nn.LogSoftmax(dim=-1)], {"favourable": 0, "log": True}),
            (
                "two-softmax",
                [nn.Linear(COLUMNS, 5), nn.ReLU(), nn.Linear(5, 2), nn.Softmax(-1)],
                {},
            ),
            ("linear", [nn.Linear(COLUMNS, 1), nn.Sigmoid()], {}),
            (
                "no-bias",
                [
                    nn.Linear(COLUMNS, 9, bias=False),
                    nn.GELU(),
                    nn.Linear(9, 1, bias=False),
                    nn.Sigmoid(),
                ],
                {},
            ),
            (
                "squeezed",
                [nn.Linear(COLUMNS, 9), nn.ReLU(), nn.Linear(9, 1), nn.Flatten(0), nn.Sigmoid()],
                {},
            ),
        ]:
            name = f"torch-{exporter}-{ending}"
            export(name, nn.Sequential(*layers), exporter)
            cases.add(name, numbers(2), "y", **options)

        torch.manual_seed(3)
        normalised = nn.Sequential(
            nn.BatchNorm1d(COLUMNS),
            nn.Linear(COLUMNS, 16),
            nn.BatchNorm1d(16),
            nn.GELU(),
            nn.Dropout(0.3),
            nn.Linear(16, 8),
            nn.ReLU(),
            nn.BatchNorm1d(8),
            nn.Dropout(0.5),
            nn.Linear(8, 2),
            nn.Softmax(dim=1),
        )
        for _ in range(20):  # gives the batch-norm layers statistics of their own
            normalised(torch.randn(64, COLUMNS) * 2 + 1)
        name = f"torch-{exporter}-batch-norm-dropout"
        export(name, normalised, exporter)
        cases.add(name, numbers(3), "y")

    torch.manual_seed(4)
    wide = nn.Sequential(
        nn.Linear(COLUMNS, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 1),
        nn.Sigmoid(),
    )
    export("torch-dynamo-external-data", wide, "dynamo", external_data=True)
    cases.add("torch-dynamo-external-data", numbers(4), "y")


# -------------------------------------------------------------------------------------------- Keras


def keras_models(cases):
    import keras

    def export(name, layers):
        keras.utils.set_random_seed(len(name))
        model = keras.Sequential([keras.Input((COLUMNS,)), *layers])
        model.predict(numbers(5), verbose=0)  # the exporter refuses a model that was never called
        model.export(str(cases.path(name)), format="onnx", verbose=False)
        return runtime(cases.path(name)).get_outputs()[0].name

    dense = keras.layers.Dense
    for activation in ["relu", "tanh", "sigmoid", "elu", "gelu", "silu", "softplus", "leaky_relu"]:
        name = f"keras-{activation.replace('_', '-')}"
        output = export(
            name,
            [
                dense(16, activation=activation),
                dense(8, activation=activation),
                dense(1, activation="sigmoid"),
            ],
        )
        cases.add(name, numbers(5), output)
    name = "keras-softmax-batch-norm"
    output = export(
        name,
        [
            dense(16),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.Dropout(0.2),
            dense(8, activation="relu"),
            dense(3, activation="softmax"),
        ],
    )
    cases.add(name, numbers(6), output, favourable=2)


# ------------------------------------------------------------------------------------- scikit-learn


def sklearn_models(cases):
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
    from sklearn.tree import DecisionTreeClassifier
    import pandas as pd

    train = numbers(7, rows=400)
    two, three = labels(train), labels(train, 3)

    def add(
        name,
        model,
        inputs,
        types,
        output="probabilities",
        zipmap=False,
        favourable=None,
        kind="mlp",
        target=None,
    ):
        options = {id(model): {"zipmap": zipmap}}
        exported = to_onnx(model, initial_types=types, options=options)
        cases.add(name, inputs, output, favourable=favourable, model=exported, kind=kind)

    matrix = [("x", FloatTensorType([None, COLUMNS]))]
    quick = {"max_iter": 60, "random_state": 0}

    for activation in ["relu", "tanh", "logistic"]:
        model = MLPClassifier((12, 6), activation=activation, **quick).fit(train, two)
        add(f"sklearn-mlp-{activation}", model, numbers(8), matrix)
    model = MLPClassifier((10,), **quick).fit(train, three)
    add("sklearn-mlp-three-classes", model, numbers(9), matrix, favourable=2)
    add(
        "sklearn-mlp-zipmap",
        MLPClassifier((10,), **quick).fit(train, two),
        numbers(9),
        matrix,
        "output_probability",
        zipmap=True,
    )
    names = np.array(["refused", "granted"])[two]
    add(
        "sklearn-mlp-text-labels",
        MLPClassifier((10,), **quick).fit(train, names),
        numbers(9),
        matrix,
    )

    add("sklearn-logistic", LogisticRegression().fit(train, two), numbers(10), matrix)
    add(
        "sklearn-logistic-zipmap",
        LogisticRegression().fit(train, names),
        numbers(10),
        matrix,
        "output_probability",
        zipmap=True,
    )
    add(
        "sklearn-logistic-three-classes",
        LogisticRegression().fit(train, three),
        numbers(10),
        matrix,
        favourable=0,
    )

    shifted = train * 30 + 100
    rows = numbers(11) * 30 + 100
    for scaler in [
        StandardScaler(),
        MinMaxScaler(),
        MinMaxScaler((-1, 1)),
        StandardScaler(with_mean=False),
    ]:
        label = type(scaler).__name__.lower() + (
            "" if not scaler.get_params().get("feature_range", (0, 1))[0] else "-signed"
        )
        label += "-no-mean" if scaler.get_params().get("with_mean") is False else ""
        add(
            f"sklearn-{label}-logistic",
            make_pipeline(scaler, LogisticRegression()).fit(shifted, two),
            rows,
            matrix,
        )
        add(
            f"sklearn-{label}-mlp",
            make_pipeline(scaler, MLPClassifier((10,), **quick)).fit(shifted, two),
            rows,
            matrix,
        )
    add(
        "sklearn-standardscaler-forest",
        make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=0)).fit(
            shifted, two
        ),
        rows,
        matrix,
        kind="trees",
    )

    def people(seed, rows=ROWS):
        random = np.random.default_rng(seed)
        return pd.DataFrame(
            {
                "age": random.integers(18, 80, rows).astype(np.float32),
                "income": random.lognormal(8, 0.6, rows).astype(np.float32),
                "rooms": random.integers(1, 6, rows).astype(np.int64),
                "purpose": random.choice(["car", "house", "school", "other"], rows),
                "married": random.choice(["no", "yes"], rows),
            }
        )

    def feed(frame):
        return {
            name: (
                frame[name].to_numpy().astype(object)
                if frame[name].dtype.kind not in "fi"
                else frame[name].to_numpy()
            )[:, None]
            for name in frame
        }

    table = people(12, 400)
    good = (
        ((table["income"] > 3000) ^ (table["purpose"] == "car").to_numpy())
        .astype(np.int64)
        .to_numpy()
    )
    columns = [
        ("age", FloatTensorType([None, 1])),
        ("income", FloatTensorType([None, 1])),
        ("rooms", Int64TensorType([None, 1])),
        ("purpose", StringTensorType([None, 1])),
        ("married", StringTensorType([None, 1])),
    ]

    def encoder(scaler, **options):
        return ColumnTransformer(
            [
                ("numbers", scaler, ["age", "income"]),
                (
                    "texts",
                    OneHotEncoder(sparse_output=False, handle_unknown="ignore", **options),
                    ["purpose", "married"],
                ),
                ("counts", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["rooms"]),
            ]
        )

    endings = [
        ("logistic", LogisticRegression(max_iter=500), "mlp"),
        ("mlp", MLPClassifier((12,), **quick), "mlp"),
        ("forest", RandomForestClassifier(15, max_depth=6, random_state=0), "trees"),
        ("boosting", GradientBoostingClassifier(n_estimators=15, random_state=0), "trees"),
    ]
    for ending, model, kind in endings:
        pipeline = make_pipeline(encoder(StandardScaler()), model).fit(table, good)
        add(f"sklearn-columns-{ending}", pipeline, feed(people(13)), columns, kind=kind)
    pipeline = make_pipeline(
        encoder(MinMaxScaler(), drop="if_binary"), LogisticRegression(max_iter=500)
    ).fit(table, good)
    add("sklearn-columns-drop-minmax", pipeline, feed(people(13)), columns)
    pipeline = make_pipeline(
        encoder(StandardScaler()), StandardScaler(), MLPClassifier((8,), **quick)
    ).fit(table, good)
    add("sklearn-columns-scaled-twice", pipeline, feed(people(13)), columns)
    passing = ColumnTransformer(
        [("texts", OneHotEncoder(sparse_output=False), ["purpose"])], remainder="passthrough"
    )
    kept = table[["age", "income", "purpose"]]
    pipeline = make_pipeline(passing, RandomForestClassifier(15, max_depth=6, random_state=0)).fit(
        kept, good
    )
    add(
        "sklearn-columns-passthrough",
        pipeline,
        feed(people(13)[list(kept)]),
        [columns[0], columns[1], columns[3]],
        kind="trees",
    )

    # One float matrix whose last two columns are codes.
    def coded(seed, rows=ROWS):
        random = np.random.default_rng(seed)
        return np.column_stack(
            [numbers(seed, 3, rows) * 10, random.integers(0, 4, rows), random.integers(1, 3, rows)]
        ).astype(np.float32)

    codes = coded(14, 400)
    answer = ((codes[:, 0] > 0) ^ (codes[:, 3] == 2)).astype(np.int64)
    for ending, model, kind in endings:
        blocks = ColumnTransformer(
            [
                ("numbers", StandardScaler(), [0, 1, 2]),
                ("codes", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), [3, 4]),
            ]
        )
        add(
            f"sklearn-matrix-{ending}",
            make_pipeline(blocks, model).fit(codes, answer),
            coded(15),
            [("x", FloatTensorType([None, 5]))],
            kind=kind,
        )

    # Two blocks of columns, one of numbers and one of texts.
    blocks = ColumnTransformer(
        [
            ("n", StandardScaler(), [0, 1]),
            ("t", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), [2, 3]),
        ]
    )
    frame = table[["age", "income", "purpose", "married"]]
    pipeline = make_pipeline(blocks, LogisticRegression(max_iter=500)).fit(frame, good)
    fresh = people(16)
    grouped = {
        "numbers": fresh[["age", "income"]].to_numpy(),
        "texts": fresh[["purpose", "married"]].to_numpy().astype(object),
    }
    add(
        "sklearn-two-blocks",
        pipeline,
        grouped,
        [("numbers", FloatTensorType([None, 2])), ("texts", StringTensorType([None, 2]))],
    )

    holes = train.copy()
    holes[::7, 1] = np.nan
    rows = numbers(17)
    rows[::5, 1] = np.nan
    add(
        "sklearn-imputer-scaler-mlp",
        make_pipeline(SimpleImputer(), StandardScaler(), MLPClassifier((8,), **quick)).fit(
            holes, two
        ),
        rows,
        matrix,
    )

    forests = {
        "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
        "forest": RandomForestClassifier(30, random_state=0),
        "extra-trees": ExtraTreesClassifier(20, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=30, random_state=0),
        "hist-boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
    }
    for name, model in forests.items():
        add(f"sklearn-{name}", model.fit(train, two), numbers(18), matrix, kind="trees")
        add(
            f"sklearn-{name}-three-classes",
            model.fit(train, three),
            numbers(18),
            matrix,
            favourable=1,
            kind="trees",
        )
    rows = numbers(19)
    rows[::3, 0] = np.nan
    holes = train.copy()
    holes[::4, 0] = np.nan
    add(
        "sklearn-hist-boosting-missing",
        forests["hist-boosting"].fit(holes, two),
        rows,
        matrix,
        kind="trees",
    )


# ----------------------------------------------------------------------------- XGBoost and LightGBM


def boosting_models(cases):
    import lightgbm
    import xgboost
    from onnxmltools import convert_lightgbm, convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    train = numbers(20, rows=400)
    rows = numbers(21)
    rows[::6, 2] = np.nan
    matrix = [("x", FloatTensorType([None, COLUMNS]))]
    for classes, favourable, suffix in [(2, None, ""), (3, 2, "-three-classes")]:
        target = labels(train, classes)
        model = xgboost.XGBClassifier(n_estimators=25, max_depth=4).fit(train, target)
        cases.add(
            f"xgboost{suffix}",
            rows,
            "probabilities",
            favourable=favourable,
            kind="trees",
            model=convert_xgboost(model, initial_types=matrix, target_opset=15),
        )
        model = lightgbm.LGBMClassifier(n_estimators=25, verbose=-1).fit(train, target)
        for zipmap in [False, True]:
            cases.add(
                f"lightgbm{suffix}{'-zipmap' if zipmap else ''}",
                rows,
                "probabilities",
                favourable=favourable,
                kind="trees",
                model=convert_lightgbm(model, initial_types=matrix, zipmap=zipmap, target_opset=15),
            )


# ------------------------------------------------------------------ TreeEnsemble of ai.onnx.ml 5


class TreeEnsemble:
    """Collects nodes and leaves for one operator."""

    MODES = ["<=", "<", ">=", ">", "==", "!=", "in"]

    def __init__(self, targets=1, aggregate=1, ending=None):
        self.plain = {"n_targets": targets, "aggregate_function": aggregate}
        self.ending = ending
        self.roots, self.nodes, self.leaves, self.members = [], [], [], []

    def leaf(self, target, weight):
        self.leaves.append((target, weight))
        return len(self.leaves) - 1, True

    def node(self, feature, mode, split, yes, no, missing=0):
        """Children are made first: pairs of a number and whether it is a leaf."""
        if mode == "in":
            self.members += [*split, np.nan]
            split = 0.0
        self.nodes.append((feature, self.MODES.index(mode), split, missing, *yes, *no))
        return len(self.nodes) - 1, False

    def root(self, child):
        number, is_leaf = child
        if is_leaf:
            number, _ = self.node(0, "<=", 0.0, child, child)
        self.roots.append(number)

    def tree(self, tree, weights, node=0):
        """A tree of scikit-learn; `weights(node)` is the target and the weight of a leaf."""
        if tree.children_left[node] < 0:
            return self.leaf(*weights(node))
        yes = self.tree(tree, weights, tree.children_left[node])
        no = self.tree(tree, weights, tree.children_right[node])
        missing = int(tree.missing_go_to_left[node])
        return self.node(tree.feature[node], "<=", tree.threshold[node], yes, no, missing)

    def model(self, double=False):
        real = onnx.TensorProto.DOUBLE if double else onnx.TensorProto.FLOAT
        features, modes, splits, missing, yes, yes_leaf, no, no_leaf = zip(*self.nodes)
        targets, weights = zip(*self.leaves)

        def tensor(name, kind, values):
            kept = onnx.helper.make_tensor(name, kind, [len(values)], list(values))
            return {name: kept}

        def whole(values):
            return [int(value) for value in values]

        node = onnx.helper.make_node(
            "TreeEnsemble",
            ["x"],
            ["z" if self.ending else "y"],
            domain="ai.onnx.ml",
            **self.plain,
            **tensor("nodes_modes", onnx.TensorProto.UINT8, modes),
            **tensor("nodes_splits", real, splits),
            **tensor("leaf_weights", real, weights),
            **(tensor("membership_values", real, self.members) if self.members else {}),
            tree_roots=self.roots,
            nodes_featureids=whole(features),
            nodes_missing_value_tracks_true=whole(missing),
            nodes_truenodeids=whole(yes),
            nodes_trueleafs=whole(yes_leaf),
            nodes_falsenodeids=whole(no),
            nodes_falseleafs=whole(no_leaf),
            leaf_targetids=whole(targets),
        )
        nodes = [node]
        if self.ending:
            nodes.append(onnx.helper.make_node(self.ending, ["z"], ["y"]))
        graph = onnx.helper.make_graph(
            nodes,
            "trees",
            [onnx.helper.make_tensor_value_info("x", real, [None, COLUMNS])],
            [onnx.helper.make_tensor_value_info("y", real, [None, self.plain["n_targets"]])],
        )
        opsets = [("", 20), ("ai.onnx.ml", 5)]
        made = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid(*each) for each in opsets]
        )
        made.ir_version = 10
        return made


def tree_ensembles(cases):
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

    train, rows = numbers(22, rows=400), numbers(23)
    train[::7, 1] = np.nan
    rows[::5, 1] = np.nan
    known = np.nan_to_num(train)

    def add(name, ensemble, favourable=None, inputs=rows, **options):
        inputs = inputs.astype(np.float64) if options.get("double") else inputs
        model = ensemble.model(**options)
        cases.add(name, inputs, "y", favourable=favourable, kind="trees", model=model)

    forest = RandomForestClassifier(20, max_depth=7, random_state=0).fit(train, labels(known))
    trees = [each.tree_ for each in forest.estimators_]
    for aggregate, word in [(0, "average"), (2, "minimum"), (3, "maximum")]:
        made = TreeEnsemble(aggregate=aggregate)
        for tree in trees:
            made.root(made.tree(tree, lambda node, tree=tree: (0, tree.value[node, 0, 1])))
        add(f"tree-ensemble-{word}", made)
        if aggregate == 0:
            add("tree-ensemble-double", made, double=True)
    boosted = GradientBoostingClassifier(n_estimators=20, random_state=0)
    boosted.fit(known, labels(known))
    made = TreeEnsemble(ending="Sigmoid")
    made.root(made.leaf(0, -0.25))
    for (each,) in boosted.estimators_:
        tree = each.tree_
        made.root(made.tree(tree, lambda node, tree=tree: (0, 0.1 * tree.value[node, 0, 0])))
    add("tree-ensemble-logistic", made)
    boosted.fit(known, labels(known, 3))
    made = TreeEnsemble(targets=3, ending="Softmax")
    for stage in boosted.estimators_:
        for target, each in enumerate(stage):
            tree = each.tree_
            made.root(
                made.tree(tree, lambda n, t=tree, target=target: (target, 0.1 * t.value[n, 0, 0]))
            )
    add("tree-ensemble-softmax", made, favourable=1)


def evaluate(rows, answers, *models):
    """Writes onnxruntime's `probability` and `logits` for models that tyrex wrote."""
    matrix = np.array(json.loads(Path(rows).read_text()), dtype=np.float32)
    found = []
    for model in models:
        onnx.checker.check_model(onnx.load(model), full_check=True)
        probability, logits = runtime(model).run(["probability", "logits"], {"input": matrix})
        assert probability.shape == (len(matrix), 1), probability.shape
        found.append({"probability": probability.ravel().tolist(), "logits": logits.tolist()})
    Path(answers).write_text(json.dumps(found))


def main(arguments):
    # Read when the packages are imported, which the functions above do.
    os.environ["KERAS_BACKEND"] = "torch"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    warnings.filterwarnings("ignore")
    if arguments[:1] == ["--evaluate"]:
        evaluate(*arguments[1:])
        return
    cases = Cases(arguments[0])
    cases.folder.mkdir(parents=True, exist_ok=True)
    makers = {
        "torch": torch_models,
        "keras": keras_models,
        "sklearn": sklearn_models,
        "boosting": boosting_models,
        "tree-ensemble": tree_ensembles,
    }
    for name, make in makers.items():
        if len(arguments) == 1 or name in arguments[1:]:
            make(cases)
    cases.write()


main(sys.argv[1:])
