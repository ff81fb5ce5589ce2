"""Boolean columns: numbers for most packages, two levels for the native engine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import need
from .converted import Onnx
from .graph import OPSETS

if TYPE_CHECKING:
    from ..data import Frame

PREFIX = "flags/"
PURPOSE = "to read models with boolean columns"


def with_flags(converted: Onnx, frame: Frame) -> Onnx:
    """The same model with the texts `true` and `false` as inputs for boolean columns."""
    chosen = frame.select(converted.features or frame.names)
    flags = {n for n, column in zip(chosen.names, chosen.columns) if column.dtype == bool}
    if not flags:
        return converted
    content = _rewritten(converted.content, chosen.names, flags)
    levels = {name: known for name, known in converted.levels.items() if name not in flags}
    return replace(converted, content=content, features=chosen.names, levels=levels)


def _rewritten(content: bytes, names: list[str], flags: set[str]) -> bytes:
    onnx = need("onnx", PURPOSE)
    helper, compose = onnx.helper, need("onnx.compose", PURPOSE)
    model = onnx.load_from_string(content)
    is_matrix = [entry.name for entry in model.graph.input] != names
    real = model.graph.input[0].type.tensor_type.elem_type
    kinds = {entry.name: entry.type.tensor_type.elem_type for entry in model.graph.input}
    model = compose.add_prefix(model, PREFIX)
    graph = model.graph
    matrix = graph.input[0].name
    front, entries = [], []
    for place, name in enumerate(names):
        value = f"{PREFIX}column{place}" if is_matrix else PREFIX + name
        kind = real if is_matrix else kinds[name]
        if name not in flags:
            front.append(helper.make_node("Identity", [name], [value]))
        else:
            encoders = [] if is_matrix else _encoders(graph, value)
            for encoder in encoders:
                _read_texts(helper, encoder, name)
            if not encoders:
                front += _as_number(helper, name, value, kind)
            kind = onnx.TensorProto.STRING
        entries.append(helper.make_tensor_value_info(name, kind, [None, 1]))
    if is_matrix:
        columns = [f"{PREFIX}column{place}" for place in range(len(names))]
        front.append(helper.make_node("Concat", columns, [matrix], axis=1))
    read = {name for node in graph.node for name in node.input}
    nodes = [n for n in graph.node if n.op_type != "Cast" or n.output[0] in read | _outputs(graph)]
    graph.initializer.append(
        helper.make_tensor(f"{PREFIX}shape", onnx.TensorProto.INT64, [2], [-1, 1])
    )
    made = helper.make_graph([*front, *nodes], graph.name, entries, graph.output, graph.initializer)
    opsets = {o.domain: o.version for o in model.opset_import}
    opsets.setdefault("ai.onnx.ml", OPSETS["ai.onnx.ml"])
    ids = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    whole = helper.make_model(made, opset_imports=ids, ir_version=model.ir_version)
    written: bytes = whole.SerializeToString()
    return written


def _outputs(graph: Any) -> set[str]:
    return {output.name for output in graph.output}


def _encoders(graph: Any, value: str) -> list[Any]:
    """The one-hot encoders of a column, if nothing else reads it."""
    readers = [node for node in graph.node if value in node.input]
    if len(readers) == 1 and readers[0].op_type == "Cast":
        return _encoders(graph, readers[0].output[0])
    return readers if all(node.op_type == "OneHotEncoder" for node in readers) else []


def _read_texts(helper: Any, encoder: Any, column: str) -> None:
    """An encoder of 0 and 1 becomes one of `false` and `true`."""
    known = {attribute.name: attribute for attribute in encoder.attribute}
    texts = ["true" if value else "false" for value in known["cats_int64s"].ints]
    kept = [a for a in encoder.attribute if a.name != "cats_int64s"]
    del encoder.attribute[:]
    encoder.attribute.extend([*kept, helper.make_attribute("cats_strings", texts)])
    encoder.input[0] = column


def _as_number(helper: Any, column: str, value: str, kind: int) -> list[Any]:
    """1 for `true`, else 0."""
    encode = helper.make_node(
        "OneHotEncoder", [column], [value + "/hot"], domain="ai.onnx.ml", cats_strings=["true"]
    )
    flat = helper.make_node("Reshape", [value + "/hot", f"{PREFIX}shape"], [value + "/flat"])
    return [encode, flat, helper.make_node("Cast", [value + "/flat"], [value], to=kind)]
