"""ONNX graphs: composition, and the kind of their outputs."""

from __future__ import annotations

import bisect
import copy
from typing import Any

import numpy as np

from ..errors import need
from .converted import NotNative

#: The operator sets everything is exported in, so that graphs can be joined.
OPSETS = {"": 18, "ai.onnx.ml": 3}

#: Operators that change a value's shape or type but not its numbers.
_SHAPES = {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}
_PRODUCTS = {"Gemm", "MatMul"}
_PROBABILITIES = {"Sigmoid", "Softmax"}


def join(first: bytes, second: bytes) -> bytes:
    """Appends the second graph: its only input is the first graph's only output."""
    onnx = need("onnx", "to put a preprocessor before a model")
    compose = need("onnx.compose", "to put a preprocessor before a model")
    before, after = onnx.load_from_string(first), onnx.load_from_string(second)
    after = compose.add_prefix(after, "model/")
    _match_precision(onnx, before, after)
    domains = {o.domain for graph in (before, after) for o in graph.opset_import}
    for graph in (before, after):
        _set_versions(onnx, graph, domains, max(before.ir_version, after.ir_version))
    link = (before.graph.output[0].name, after.graph.input[0].name)
    merged = compose.merge_models(before, after, io_map=[link])
    content: bytes = merged.SerializeToString()
    return content


def with_columns(content: bytes, names: list[str]) -> tuple[bytes, list[str]]:
    """The graph with one input for each of these columns, and the columns that it uses.

    Exporters replace letters in names, and keep inputs that nothing depends on.
    """
    onnx = need("onnx", "to name the columns of a model")
    compose = need("onnx.compose", "to name the columns of a model")
    model = compose.add_prefix(onnx.load_from_string(content), "graph/")
    read = {name for node in model.graph.node for name in node.input}
    columns = {entry.name: name for entry, name in zip(model.graph.input, names)}
    used = [entry for entry in model.graph.input if entry.name in read]
    features = [columns[entry.name] for entry in used]
    for entry, name in zip(used, features):
        entry.name = name
    for node in model.graph.node:
        node.input[:] = [columns.get(name, name) for name in node.input]
    kept = [copy.deepcopy(entry) for entry in used]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model.SerializeToString(), features


def widened(content: bytes, places: list[int]) -> bytes:
    """The graph with new columns in front of these of its one input, which change nothing."""
    if not places:
        return content
    onnx = need("onnx", "to put a preprocessor before a model")
    model = onnx.load_from_string(content)
    (entry,) = model.graph.input
    width = entry.type.tensor_type.shape.dim[1]
    width.dim_value += len(places)
    same = {entry.name}
    for node in model.graph.node:
        if same.isdisjoint(node.input):
            continue
        if node.op_type in _SHAPES:
            same.update(node.output)
        else:
            _widen(onnx, model.graph, node, places)
    widest: bytes = model.SerializeToString()
    return widest


def _widen(onnx: Any, graph: Any, node: Any, places: list[int]) -> None:
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type in ("TreeEnsembleClassifier", "TreeEnsembleRegressor"):
        features = attributes["nodes_featureids"].ints
        features[:] = [f + bisect.bisect_right(places, f) for f in features]
    elif node.op_type == "LinearClassifier":
        values = attributes["coefficients"].floats
        classes = len(attributes["intercepts"].floats)
        wide = np.insert(np.reshape(values, (classes, -1)), places, 0.0, axis=1)
        values[:] = wide.ravel().tolist()
    elif node.op_type in _PRODUCTS:
        (weights,) = [w for w in graph.initializer if w.name == node.input[1]]
        turned = "transB" in attributes and attributes["transB"].i == 1
        wide = np.insert(onnx.numpy_helper.to_array(weights), places, 0.0, axis=int(turned))
        weights.CopyFrom(onnx.numpy_helper.from_array(wide, weights.name))
    else:
        raise NotNative(f"{node.op_type} does not take more columns")


def levels(content: bytes) -> dict[str, list[Any]]:
    """The columns that a graph one-hot encodes, and the values it knows of each."""
    graph = need("onnx", "to read models").load_from_string(content).graph
    makers = {name: node for node in graph.node for name in node.output}
    columns = {entry.name for entry in graph.input}
    found: dict[str, list[Any]] = {}
    for node in graph.node:
        if node.op_type != "OneHotEncoder":
            continue
        name = node.input[0]
        while name in makers and makers[name].op_type in _SHAPES:
            name = makers[name].input[0]
        if name in columns:
            known = {attribute.name: attribute for attribute in node.attribute}
            if "cats_strings" in known:
                found[name] = [text.decode() for text in known["cats_strings"].strings]
            else:
                found[name] = list(known["cats_int64s"].ints)
    return found


def _match_precision(onnx: Any, before: Any, after: Any) -> None:
    """Converts the first graph's only output to the type of the second graph's only input."""
    (output,), (entry,) = before.graph.output, after.graph.input
    kind, wanted = output.type.tensor_type, entry.type.tensor_type.elem_type
    if kind.elem_type != wanted:
        name = f"{output.name}/cast"
        before.graph.node.append(onnx.helper.make_node("Cast", [output.name], [name], to=wanted))
        output.name, kind.elem_type = name, wanted


def _set_versions(onnx: Any, model: Any, domains: set[str], ir_version: int) -> None:
    """Declares the common versions.

    The operators in question (scalers, encoders, trees, dense layers) have not changed between
    the versions the exporters use.
    """
    model.ir_version = ir_version
    del model.opset_import[:]
    for domain in sorted(domains):
        version = OPSETS.get("" if domain == "ai.onnx" else domain, 1)
        model.opset_import.append(onnx.helper.make_opsetid(domain, version))


def ends_linear(content: bytes) -> bool:
    """Whether the only output is the sums of a layer, without a function on top."""
    makers, last = _ending(content)
    if last is None or last.op_type != "Add":
        return last is not None and last.op_type in _PRODUCTS
    return any(makers[name].op_type in _PRODUCTS for name in last.input if name in makers)


def ends_in_probabilities(content: bytes) -> bool:
    """Whether the only output is a sigmoid or a softmax."""
    _, last = _ending(content)
    return last is not None and last.op_type in _PROBABILITIES


def _ending(content: bytes) -> tuple[dict[str, Any], Any]:
    """Which node makes which value, and the last node that computes something."""
    onnx = need("onnx", "to read neural networks")
    graph = onnx.load_from_string(content).graph
    makers = {name: node for node in graph.node for name in node.output}
    last = makers.get(graph.output[0].name)
    while last is not None and last.op_type in _SHAPES:
        last = makers.get(last.input[0])
    return makers, last
