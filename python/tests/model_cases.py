"""Models of real packages, and the data they were trained on."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads cost more than they bring here
torch = pytest.importorskip("torch")
keras = pytest.importorskip("keras")
pd = pytest.importorskip("pandas")
pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")
pytest.importorskip("onnxmltools")
lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

from sklearn import ensemble, linear_model, tree  # noqa: E402
from sklearn.compose import ColumnTransformer, make_column_transformer  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import (  # noqa: E402
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)


ROWS = 300
COLUMNS = 5
TOLERANCE = 1e-5

# ------------------------------------------------------------------------------------------ data


def numbers(seed: int = 0, rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 1.5, size=(rows, COLUMNS))


def labels(x: np.ndarray, classes: int = 2) -> np.ndarray:
    score = x[:, 0] - 0.7 * x[:, 1] + 0.3 * x[:, 2] * x[:, 3]
    edges = np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1])
    return np.searchsorted(edges, score).astype(np.int64)


X = numbers()
TWO, THREE = labels(X), labels(X, 3)
TEXT = np.array(["refused", "granted"])[TWO]
HOLES = np.where(np.random.default_rng(5).random(X.shape) < 0.1, np.nan, X)
AWKWARD = pd.DataFrame(X, columns=["probabilities", "variable", "a b", "a_b", "label"])
NAMED = pd.DataFrame(X, columns=["age", "Income ($)", "a b", "größe", "x[0]"])


def people(seed: int = 1, rows: int = ROWS) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(18, 80, rows),
            "income": random.lognormal(8, 0.6, rows),
            "rooms": random.integers(1, 6, rows),
            "purpose of loan": random.choice(["car", "house", "school", "other"], rows),
            "married": random.choice(["no", "yes"], rows),
        }
    )


PEOPLE = people()
GOOD = (
    ((PEOPLE["income"] > 3000) ^ (PEOPLE["purpose of loan"] == "car"))
    .map({True: "good"})
    .fillna("bad")
)
TEXTS = ["purpose of loan", "married"]
DUMMIES = pd.get_dummies(PEOPLE)  # truth values
FLAGGED = PEOPLE.assign(married=PEOPLE["married"] == "yes", senior=PEOPLE["age"] > 60)


def encoder(**options: Any) -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["age", "income"]),
            ("texts", OneHotEncoder(handle_unknown="ignore", **options), TEXTS),
            ("rooms", "passthrough", ["rooms"]),
        ]
    )


# ---------------------------------------------------------------------------------------- models


def stack(*ending: Any, activation: Any = None, outputs: int = 1) -> Any:
    torch.manual_seed(3)
    middle = activation or torch.nn.ReLU()
    return torch.nn.Sequential(
        torch.nn.Linear(COLUMNS, 8), middle, torch.nn.Linear(8, outputs), *ending
    )


class Squeezed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = stack(torch.nn.Sigmoid())

    def forward(self, x: Any) -> Any:
        return self.inner(x).squeeze(-1)


class Skipping(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.a = torch.nn.Linear(COLUMNS, COLUMNS)
        self.b = torch.nn.Linear(COLUMNS, 1)

    def forward(self, x: Any) -> Any:
        return torch.sigmoid(self.b(torch.relu(self.a(x)) + x))


class Deciding(torch.nn.Module):
    """Asks the values which way to go, which no graph can say."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.a = torch.nn.Linear(COLUMNS, 1)

    def forward(self, x: Any) -> Any:
        return torch.sigmoid(torch.stack([self.a(row) for row in x]))


def normalised() -> Any:
    torch.manual_seed(5)
    model = torch.nn.Sequential(
        torch.nn.BatchNorm1d(COLUMNS),
        torch.nn.Linear(COLUMNS, 8),
        torch.nn.BatchNorm1d(8),
        torch.nn.GELU(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(8, 2),
        torch.nn.Softmax(dim=1),
    )
    for _ in range(5):
        model(torch.randn(64, COLUMNS) * 2 + 1)
    return model


ACTIVATIONS = {
    "leaky-relu": torch.nn.LeakyReLU(0.07),
    "elu": torch.nn.ELU(0.8),
    "selu": torch.nn.SELU(),
    "gelu": torch.nn.GELU(),
    "gelu-tanh": torch.nn.GELU(approximate="tanh"),
    "tanh": torch.nn.Tanh(),
    "softplus": torch.nn.Softplus(),
    "silu": torch.nn.SiLU(),
}


def keras_stack(*layers: Any, ending: str | None = "sigmoid", outputs: int = 1) -> Any:
    keras.utils.set_random_seed(6)
    dense = keras.layers.Dense
    middle = layers or (dense(8, activation="relu"),)
    return keras.Sequential([keras.Input((COLUMNS,)), *middle, dense(outputs, activation=ending)])


def keras_functional() -> Any:
    keras.utils.set_random_seed(7)
    start = keras.Input((COLUMNS,))
    inner = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4, activation="tanh")])
    x = keras.layers.Rescaling(0.5, offset=1.0)(start)
    x = keras.layers.Dense(6, use_bias=False)(x)
    x = keras.layers.ReLU(negative_slope=0.1)(x)
    x = inner(x)
    x = keras.layers.Flatten()(x)
    return keras.Model(start, keras.layers.Dense(1, activation="sigmoid")(x))


def keras_normalised() -> Any:
    keras.utils.set_random_seed(8)
    scale = keras.layers.Normalization()
    scale.adapt(X)
    model = keras_stack(
        scale,
        keras.layers.Dense(8),
        keras.layers.BatchNormalization(),
        keras.layers.Activation("gelu"),
        keras.layers.Dropout(0.5),
        ending="softmax",
        outputs=3,
    )
    model.compile(loss="sparse_categorical_crossentropy", optimizer="sgd")
    model.fit(X, THREE, epochs=2, verbose=0)
    return model


def keras_skipping() -> Any:
    keras.utils.set_random_seed(9)
    start = keras.Input((COLUMNS,))
    x = keras.layers.Add()([keras.layers.Dense(COLUMNS, activation="relu")(start), start])
    return keras.Model(start, keras.layers.Dense(1, activation="sigmoid")(x))


def never_built() -> Any:
    return keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1, activation="sigmoid")])


def stopped_early() -> Any:
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=3, early_stopping_rounds=2)
    return model.fit(X[:150], TWO[:150], eval_set=[(X[150:], TWO[150:])], verbose=False)


def booster(data: Any, target: np.ndarray, objective: str = "binary:logistic", **rest: Any) -> Any:
    parameters = {"objective": objective, "max_depth": 3, **rest}
    return xgboost.train(parameters, xgboost.DMatrix(data, target), num_boost_round=8)


def light(**options: Any) -> Any:
    return lightgbm.LGBMClassifier(n_estimators=8, verbose=-1, n_jobs=1, **options)


QUICK = {"max_iter": 40, "random_state": 0}
SMALL = {"n_estimators": 8, "random_state": 0}


def categories() -> Any:
    """Texts as categories of pandas."""
    return PEOPLE.astype({"married": "category", "purpose of loan": "category"})


XGB = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1}

#: Name: the model, the data, options of `convert`.
NATIVE: dict[str, Callable[[], tuple[Any, Any, dict[str, Any]]]] = {
    "torch relu": lambda: (stack(torch.nn.Sigmoid()), X, {}),
    **{
        f"torch {name}": lambda a=a: (stack(torch.nn.Sigmoid(), activation=a), X, {})
        for name, a in ACTIVATIONS.items()
    },
    "torch double": lambda: (stack(torch.nn.Sigmoid()).double(), X, {}),
    "torch unfavourable": lambda: (stack(torch.nn.Sigmoid()), X, {"favourable": 0}),
    "torch logit": lambda: (stack(), X, {"logits": True}),
    "torch logits": lambda: (stack(outputs=3), X, {"logits": True, "favourable": 1}),
    "torch softmax": lambda: (stack(torch.nn.Softmax(-1), outputs=2), X, {"favourable": "good"}),
    "torch log softmax": lambda: (stack(torch.nn.LogSoftmax(1), outputs=3), X, {"favourable": [2]}),
    "torch squeezed": lambda: (Squeezed(), X, {}),
    "torch normalised": lambda: (normalised(), X, {}),
    "torch data frame": lambda: (stack(torch.nn.Sigmoid()), NAMED, {}),
    "torch script": lambda: (torch.jit.script(stack(torch.nn.Sigmoid())), X, {}),
    "torch scaler": lambda: (
        stack(torch.nn.Sigmoid()),
        X * 100 + 7,
        {"preprocessor": StandardScaler().fit(X * 100 + 7)},
    ),
    "torch columns": lambda: (
        torch.nn.Sequential(torch.nn.Linear(9, 1)),
        PEOPLE,
        {"preprocessor": encoder().fit(PEOPLE), "logits": True},
    ),
    **{
        f"keras {name}": lambda name=name: (
            keras_stack(keras.layers.Dense(8, activation=name)),
            X,
            {},
        )
        for name in ["relu", "tanh", "elu", "selu", "gelu", "silu", "softplus", "leaky_relu"]
    },
    "keras functional": lambda: (keras_functional(), X, {}),
    "keras normalised": lambda: (keras_normalised(), X, {"favourable": 2}),
    "keras logits": lambda: (keras_stack(ending=None), X, {"logits": True}),
    "keras log softmax": lambda: (keras_stack(ending="log_softmax", outputs=2), X, {}),
    "keras never built": lambda: (never_built(), X, {}),
    "keras columns": lambda: (
        keras.Sequential([keras.Input((9,)), keras.layers.Dense(1, activation="sigmoid")]),
        PEOPLE,
        {"preprocessor": encoder(sparse_output=False).fit(PEOPLE)},
    ),
    "sklearn mlp": lambda: (MLPClassifier((6,), **QUICK).fit(X, TWO), X, {}),
    "sklearn mlp three": lambda: (
        MLPClassifier((6,), activation="tanh", **QUICK).fit(X, THREE),
        X,
        {"favourable": 0},
    ),
    "sklearn mlp texts": lambda: (
        MLPClassifier((6,), **QUICK).fit(NAMED, TEXT),
        NAMED,
        {"favourable": "granted"},
    ),
    "sklearn logistic": lambda: (linear_model.LogisticRegression().fit(X, TWO), X, {}),
    "sklearn logistic on a shuffled frame": lambda: (
        linear_model.LogisticRegression().fit(NAMED, TWO),
        NAMED[NAMED.columns[::-1]],
        {"favourable": "1"},
    ),
    "sklearn logistic fitted with names": lambda: (
        linear_model.LogisticRegression().fit(NAMED, TWO),
        X,
        {},
    ),
    "sklearn sgd": lambda: (
        linear_model.SGDClassifier(loss="log_loss", random_state=0).fit(X, TWO),
        X,
        {"favourable": 0},
    ),
    "sklearn tree": lambda: (tree.DecisionTreeClassifier(max_depth=4).fit(X, TWO), X, {}),
    "sklearn forest": lambda: (ensemble.RandomForestClassifier(**SMALL).fit(X, TWO), X, {}),
    "sklearn extra trees": lambda: (
        ensemble.ExtraTreesClassifier(**SMALL).fit(X, THREE),
        X,
        {"favourable": 1},
    ),
    "sklearn boosting": lambda: (
        ensemble.GradientBoostingClassifier(**SMALL).fit(NAMED, TWO),
        NAMED,
        {},
    ),
    "sklearn hist boosting": lambda: (
        ensemble.HistGradientBoostingClassifier(max_iter=8).fit(HOLES, TWO),
        HOLES,
        {},
    ),
    "sklearn scaled": lambda: (
        make_pipeline(SimpleImputer(), MinMaxScaler(), MLPClassifier((6,), **QUICK)).fit(
            HOLES, TWO
        ),
        HOLES,
        {},
    ),
    "sklearn columns": lambda: (
        make_pipeline(encoder(), MLPClassifier((6,), **QUICK)).fit(PEOPLE, GOOD),
        PEOPLE,
        {"favourable": "good"},
    ),
    "sklearn columns, categories": lambda: (
        make_pipeline(encoder(drop="if_binary"), linear_model.LogisticRegression()).fit(
            PEOPLE.astype({"married": "category"}), GOOD
        ),
        PEOPLE.astype({"married": "category"}),
        {"favourable": "bad"},
    ),
    **{
        f"sklearn dropped category, {name}": lambda last=last: (
            make_pipeline(encoder(drop="first"), last()).fit(PEOPLE, (GOOD == "good") * 1),
            PEOPLE,
            {"favourable": 1},
        )
        for name, last in {
            "logistic": linear_model.LogisticRegression,
            "mlp": lambda: MLPClassifier((6,), **QUICK),
            "forest": lambda: ensemble.RandomForestClassifier(**SMALL),
            "xgboost": lambda: xgboost.XGBClassifier(**XGB),
            "lightgbm": light,
        }.items()
    },
    "torch dropped category": lambda: (
        torch.nn.Sequential(torch.nn.Linear(7, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)),
        PEOPLE,
        {"preprocessor": encoder(drop="first").fit(PEOPLE), "logits": True},
    ),
    "keras dropped category": lambda: (
        keras.Sequential([keras.Input((5,)), keras.layers.Dense(1, activation="sigmoid")]),
        PEOPLE[["age", *TEXTS]],
        {
            "preprocessor": make_column_transformer(
                (OneHotEncoder(drop=["car", "no"]), TEXTS), (StandardScaler(), ["age"])
            ).fit(PEOPLE[["age", *TEXTS]])
        },
    ),
    "sklearn dummies": lambda: (
        make_pipeline(StandardScaler(), linear_model.LogisticRegression()).fit(DUMMIES, GOOD),
        DUMMIES,
        {},
    ),
    "sklearn flags": lambda: (
        make_pipeline(
            make_column_transformer(
                (OneHotEncoder(), ["purpose of loan", "married"]),
                (StandardScaler(), ["income"]),
                ("passthrough", ["senior"]),
            ),
            ensemble.RandomForestClassifier(**SMALL),
        ).fit(FLAGGED, GOOD),
        FLAGGED,
        {},
    ),
    "xgboost dummies": lambda: (
        xgboost.XGBClassifier(**XGB).fit(DUMMIES, GOOD == "good"),
        DUMMIES,
        {},
    ),
    "lightgbm dummies": lambda: (light().fit(DUMMIES, GOOD), DUMMIES, {}),
    "torch dummies": lambda: (
        torch.nn.Sequential(torch.nn.Linear(6, 1), torch.nn.Sigmoid()),
        DUMMIES.drop(columns=["income", "age", "rooms"]),
        {},
    ),
    "sklearn columns, imputed": lambda: (
        make_pipeline(
            make_column_transformer(
                (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
                (OneHotEncoder(), ["rooms", "married"]),
            ),
            ensemble.RandomForestClassifier(max_depth=5, **SMALL),
        ).fit(PEOPLE.astype({"rooms": "category"}), GOOD),
        PEOPLE.astype({"rooms": "category"}),
        {},
    ),
    "sklearn columns by number": lambda: (
        make_pipeline(
            make_column_transformer((StandardScaler(), [0, 1]), (OneHotEncoder(), [3, 4])),
            linear_model.LogisticRegression(),
        ).fit(PEOPLE.to_numpy(), GOOD),
        PEOPLE,
        {},
    ),
    "sklearn numeric columns": lambda: (
        make_pipeline(
            make_column_transformer((StandardScaler(), ["age", "a b"]), remainder="passthrough"),
            linear_model.LogisticRegression(),
        ).fit(NAMED, TWO),
        NAMED,
        {},
    ),
    "sklearn columns of an array": lambda: (
        make_pipeline(
            make_column_transformer((StandardScaler(), [3, 1])), linear_model.LogisticRegression()
        ).fit(X, TWO),
        X,
        {},
    ),
    "sklearn columns by name, of an array": lambda: (
        make_pipeline(
            make_column_transformer((StandardScaler(), ["a b", "age"])),
            linear_model.LogisticRegression(),
        ).fit(NAMED, TWO),
        X,
        {},
    ),
    "sklearn slice and mask": lambda: (
        make_pipeline(
            make_column_transformer(
                (StandardScaler(), slice("age", "income")),
                (OneHotEncoder(), [False, False, False, True, True]),
            ),
            linear_model.LogisticRegression(),
        ).fit(PEOPLE, GOOD),
        PEOPLE,
        {},
    ),
    "sklearn nested pipelines": lambda: (
        make_pipeline(
            make_pipeline(StandardScaler(), MinMaxScaler()),
            make_pipeline(StandardScaler(), ensemble.RandomForestClassifier(**SMALL)),
        ).fit(X, TWO),
        X,
        {},
    ),
    "sklearn names that graphs use": lambda: (
        make_pipeline(
            make_column_transformer(
                (StandardScaler(), ["probabilities", "variable", "a b", "a_b"]),
                remainder="passthrough",
            ),
            linear_model.LogisticRegression(),
        ).fit(AWKWARD, TWO),
        AWKWARD,
        {},
    ),
    "sklearn search": lambda: (
        GridSearchCV(linear_model.LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit(X, TWO),
        X,
        {},
    ),
    "xgboost": lambda: (xgboost.XGBClassifier(**XGB).fit(HOLES, TWO), HOLES, {}),
    "xgboost names": lambda: (
        xgboost.XGBClassifier(**XGB).fit(NAMED.rename(columns={"x[0]": "x0"}), TWO),
        NAMED.rename(columns={"x[0]": "x0"})[["x0", "age", "a b", "Income ($)", "größe"]],
        {"favourable": 0},
    ),
    "xgboost three": lambda: (
        xgboost.XGBClassifier(**XGB).fit(X, THREE),
        X,
        {"favourable": 2},
    ),
    "xgboost stopped early": lambda: (stopped_early(), X, {}),
    "xgboost forest": lambda: (xgboost.XGBRFClassifier(**XGB).fit(X, TWO), X, {}),
    "xgboost booster": lambda: (booster(X, TWO), X, {}),
    "xgboost booster three": lambda: (
        booster(X, THREE, "multi:softprob", num_class=3),
        X,
        {"favourable": 1},
    ),
    "xgboost categories": lambda: (
        xgboost.XGBClassifier(enable_categorical=True, max_cat_to_onehot=1, **XGB).fit(
            categories(), GOOD == "good"
        ),
        categories(),
        {},
    ),
    "xgboost dart": lambda: (
        xgboost.XGBClassifier(booster="dart", rate_drop=0.5, **XGB).fit(X, TWO),
        X,
        {},
    ),
    "xgboost dart booster": lambda: (booster(X, TWO, booster="dart"), X, {}),
    "xgboost regression": lambda: (booster(HOLES, TWO, "reg:logistic"), HOLES, {}),
    "xgboost pipeline": lambda: (
        make_pipeline(encoder(), xgboost.XGBClassifier(**XGB)).fit(PEOPLE, (GOOD == "good") * 1),
        PEOPLE,
        {},
    ),
    "lightgbm": lambda: (light().fit(HOLES, TWO), HOLES, {}),
    "lightgbm names": lambda: (
        light().fit(NAMED.rename(columns={"x[0]": "x0"}), TEXT),
        NAMED.rename(columns={"x[0]": "x0"})[["x0", "age", "a b", "Income ($)", "größe"]],
        {"favourable": "granted"},
    ),
    "lightgbm three": lambda: (light().fit(X, THREE), X, {"favourable": 0}),
    "lightgbm booster": lambda: (light().fit(X, TWO).booster_, X, {"favourable": 0}),
    "lightgbm categories": lambda: (
        light().fit(categories(), GOOD),
        categories(),
        {"favourable": "good"},
    ),
    "lightgbm forest": lambda: (
        light(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5).fit(X, TWO),
        X,
        {},
    ),
    "lightgbm sigmoid": lambda: (light(sigmoid=2.0).fit(X, TWO), X, {}),
    "lightgbm one against all": lambda: (
        light(objective="multiclassova").fit(X, THREE),
        X,
        {"favourable": 1},
    ),
    "lightgbm zeros": lambda: (light(zero_as_missing=True).fit(X, TWO), X, {}),
    "lightgbm pipeline": lambda: (
        make_pipeline(encoder(), light()).fit(PEOPLE, GOOD),
        PEOPLE,
        {"favourable": "good"},
    ),
}
