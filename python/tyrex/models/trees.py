"""scikit-learn's trees, forests and gradient boosting, written as they are.

skl2onnx rounds thresholds to the nearest 32-bit float and leaves out where missing values go. Here
a threshold `t` becomes the largest 32-bit float up to it: for the 32-bit numbers that scikit-learn
compares, `x <= t` is the same question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import need
from .converted import Floats, NotNative
from .graph import OPSETS

if TYPE_CHECKING:
    from typing import TypeAlias

    #: The values of each node, one column per class or one alone, and their classes.
    Tree: TypeAlias = "tuple[Any, Floats, list[int]]"

MEANS = (
    "DecisionTreeClassifier",
    "ExtraTreeClassifier",
    "ExtraTreesClassifier",
    "RandomForestClassifier",
)
SUMS = ("GradientBoostingClassifier",)


def is_trees(model: Any) -> bool:
    """Whether it is one of scikit-learn's own estimators that are written here.

    >>> is_trees(object())
    False
    """
    kind = type(model)
    return kind.__module__.split(".")[0] == "sklearn" and kind.__name__ in MEANS + SUMS


def export(model: Any) -> bytes:
    """The trees as ONNX; or `NotNative`."""
    if int(getattr(model, "n_outputs_", 1)) != 1:
        raise NotNative("several targets have no one probability")
    if type(model).__name__ in SUMS:
        trees, base, link = _boosted(model)
    else:
        trees, base, link = _averaged(model), [], "NONE"
    return _graph(trees, base, link, len(model.classes_), int(model.n_features_in_))


def _averaged(model: Any) -> list[Tree]:
    """Trees of one model, whose shares of classes are averaged."""
    members = [each.tree_ for each in getattr(model, "estimators_", [model])]
    two = len(model.classes_) == 2
    trees: list[Tree] = []
    for tree in members:
        values = tree.value[:, 0, :].astype(float)
        shares = values / values.sum(axis=1, keepdims=True) / len(members)
        # Of two classes one share says all.
        trees.append(
            (tree, shares[:, 1:], [0]) if two else (tree, shares, list(range(shares.shape[1])))
        )
    return trees


def _boosted(model: Any) -> tuple[list[Tree], list[float], str]:
    """Trees whose values are added up, the sums without them, and what makes probabilities."""
    prior = getattr(getattr(model, "init_", None), "class_prior_", None)
    if model.init is None:
        base = _logits(np.asarray(prior, float), model.loss)
    elif isinstance(model.init, str) and model.init == "zero":
        base = np.zeros(1 if len(model.classes_) == 2 else len(model.classes_))
    else:
        raise NotNative("boosting on top of another model's scores")
    # The exponential loss doubles the sum.
    factor = 2.0 if model.loss == "exponential" else 1.0
    two = model.estimators_.shape[1] == 1
    trees: list[Tree] = [
        (
            each.tree_,
            factor * model.learning_rate * each.tree_.value[:, 0, :].astype(float),
            [0 if two else place],
        )
        for stage in model.estimators_
        for place, each in enumerate(stage)
    ]
    # Weights for one class of which none is negative count as probabilities.
    if two and all((values[tree.children_left < 0] >= 0).all() for tree, values, _ in trees):
        raise NotNative("boosted trees without a negative leaf")
    return trees, [float(factor * each) for each in base], "LOGISTIC" if two else "SOFTMAX"


def _logits(prior: Floats, loss: str) -> Floats:
    """What boosting starts from, from the shares of the classes."""
    tiny = np.finfo(np.float32).eps
    shares = np.clip(prior, tiny, 1 - tiny)
    if len(shares) > 2:
        return np.log(shares)
    logit = np.log(shares[1] / (1 - shares[1]))
    return np.array([0.5 * logit if loss == "exponential" else logit])


def _graph(trees: list[Tree], base: list[float], link: str, classes: int, width: int) -> bytes:
    onnx = need("onnx", "to read scikit-learn's trees")
    helper = onnx.helper
    nodes: dict[str, list[Any]] = {}
    weights: dict[str, list[Any]] = {}

    def add(lists: dict[str, list[Any]], **values: Any) -> None:
        for name, each in values.items():
            lists.setdefault(name, []).extend(each)

    for number, (tree, values, outputs) in enumerate(trees):
        count = tree.node_count
        leaf = tree.children_left < 0
        thresholds = np.where(leaf, 0.0, tree.threshold)
        to_left = getattr(tree, "missing_go_to_left", np.zeros(count, bool))
        add(
            nodes,
            nodes_treeids=[number] * count,
            nodes_nodeids=range(count),
            nodes_featureids=np.where(leaf, 0, tree.feature).tolist(),
            nodes_values=_rounded_down(thresholds).tolist(),
            nodes_modes=["LEAF" if own else "BRANCH_LEQ" for own in leaf],
            nodes_truenodeids=np.where(leaf, 0, tree.children_left).tolist(),
            nodes_falsenodeids=np.where(leaf, 0, tree.children_right).tolist(),
            nodes_missing_value_tracks_true=[
                int(way and not own) for way, own in zip(to_left, leaf)
            ],
        )
        for place in np.flatnonzero(leaf):
            add(
                weights,
                class_treeids=[number] * len(outputs),
                class_nodeids=[int(place)] * len(outputs),
                class_ids=outputs,
                class_weights=values[place].astype(np.float32).tolist(),
            )
    made = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "probabilities"],
        domain="ai.onnx.ml",
        post_transform=link,
        classlabels_int64s=list(range(classes)),
        **({"base_values": base} if base else {}),
        **nodes,
        **weights,
    )
    kinds = onnx.TensorProto
    graph = helper.make_graph(
        [made],
        "trees",
        [helper.make_tensor_value_info("x", kinds.FLOAT, [None, width])],
        [
            helper.make_tensor_value_info("label", kinds.INT64, [None]),
            helper.make_tensor_value_info("probabilities", kinds.FLOAT, [None, classes]),
        ],
    )
    ids = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    content: bytes = helper.make_model(graph, opset_imports=ids, ir_version=8).SerializeToString()
    return content


def _rounded_down(thresholds: Floats) -> Any:
    """The largest 32-bit float up to each number.

    >>> _rounded_down(np.array([0.25, 0.3])) <= np.array([0.25, 0.3])
    array([ True,  True])
    """
    near = thresholds.astype(np.float32)
    below = np.nextafter(near, np.float32(-np.inf))
    return np.where(near.astype(float) > thresholds, below, near)
