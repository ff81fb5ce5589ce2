"""Keras models, of any backend: the graph is written from the layers' weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError, need
from . import network
from .converted import Floats, Function, NotNative, Onnx
from .graph import OPSETS
from .outputs import Outputs

if TYPE_CHECKING:
    from ..data import Frame

#: Rows scored at once.
BATCH = 4096
#: Layers that do nothing when a model is used.
SILENT = {
    "ActivityRegularization",
    "AlphaDropout",
    "Dropout",
    "Flatten",
    "GaussianDropout",
    "GaussianNoise",
    "InputLayer",
    "SpatialDropout1D",
}
#: Activation functions by their Keras names: the operator and its attributes.
ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "elu": ("Elu", {"alpha": 1.0}),
    "leaky_relu": ("LeakyRelu", {"alpha": 0.2}),
    "log_softmax": ("LogSoftmax", {"axis": -1}),
    "relu": ("Relu", {}),
    "selu": ("Selu", {}),
    "sigmoid": ("Sigmoid", {}),
    "softmax": ("Softmax", {"axis": -1}),
    "softplus": ("Softplus", {}),
    "tanh": ("Tanh", {}),
}


@dataclass(frozen=True)
class Model:
    """A Keras model that takes one matrix."""

    model: Any
    framework: str = "keras"
    has_gradients = False

    def answers(self, matrix: Floats) -> Any:
        """The output of the model for the rows of a matrix."""
        return self.model.predict(matrix.astype(np.float32), batch_size=BATCH, verbose=0)

    def gradients(self, matrix: Floats, outputs: Outputs) -> Floats:
        """Gradients are not supported, since backends differ too much."""
        raise NotImplementedError

    def export(self, width: int) -> bytes:
        """The layers as ONNX."""
        onnx = need("onnx", "to read Keras models")
        writer = Writer(onnx, width)
        try:
            for layer in chain(self.model):
                writer.add(layer)
        except (AttributeError, TypeError, ValueError) as problem:  # a layer of another Keras
            raise NotNative(f"its layers cannot be read: {problem}") from None
        return writer.finish()


def convert(
    model: Any, frame: Frame, favourable: Any, logits: bool | None, preprocessor: Any
) -> Onnx | Function:
    """A dense stack as ONNX; anything else as a function."""
    if len(getattr(model, "inputs", None) or [None]) > 1:
        raise ModelError(
            f"the keras model takes {len(model.inputs)} inputs, expected one matrix; pass a "
            "function of the table that calls it"
        )
    return network.convert(Model(model), frame, favourable, logits, preprocessor)


# ---------------------------------------------------------------------------------------- layers


def chain(model: Any) -> Iterator[Any]:
    """The layers one after another, from the input; `NotNative` where they branch."""
    if type(model).__name__ == "Sequential":
        layers = list(model.layers)
    else:
        layers = _walk(model)
    for layer in layers:
        if hasattr(layer, "layers"):
            yield from chain(layer)
        else:
            yield layer


def _walk(model: Any) -> list[Any]:
    """The layers of a functional model, from its output back to its input."""
    outputs = getattr(model, "outputs", None)
    if not outputs or len(outputs) != 1:
        raise NotNative("only Keras models built from layers, with one output, become ONNX")
    tensor, layers = outputs[0], []
    while True:
        history: Any = getattr(tensor, "_keras_history", None)
        layer = getattr(history, "operation", None)
        if layer is None:
            raise NotNative("this version of Keras does not say how its layers are connected")
        layers.append(layer)
        before = layer._inbound_nodes[history.node_index].input_tensors
        if not before:
            return layers[::-1]
        if len(before) != 1:
            raise NotNative(f"layer `{layer.name}` has several inputs; only stacks become ONNX")
        tensor = before[0]


def _numbers(values: Any) -> Floats:
    """A weight as an array, wherever the backend has it."""
    keras = need("keras", "to read Keras models")
    return np.asarray(keras.ops.convert_to_numpy(values), dtype=np.float64)


@dataclass
class Writer:
    """Writes a chain of nodes."""

    onnx: Any
    width: int
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    last: str = "x"

    def add(self, layer: Any) -> None:
        """Writes the operation of a layer."""
        kind = type(layer).__name__
        if kind in SILENT or kind == "Reshape" and len(layer.target_shape) == 1:
            return
        write = LAYERS.get(kind)
        if write is None:
            raise NotNative(f"layer `{layer.name}` is a {kind}; only dense stacks become ONNX")
        write(self, layer)

    def node(self, operator: str, constants: tuple[Floats, ...] = (), **attributes: Any) -> None:
        """One node on top of the last one."""
        names = []
        for values in constants:
            names.append(f"c{len(self.constants)}")
            tensor = self.onnx.numpy_helper.from_array(np.asarray(values, np.float32), names[-1])
            self.constants.append(tensor)
        output = f"v{len(self.nodes)}"
        node = self.onnx.helper.make_node(operator, [self.last, *names], [output], **attributes)
        self.nodes.append(node)
        self.last = output

    def activation(self, function: Any, layer: Any) -> None:
        """An activation function, by its name."""
        name = getattr(function, "__name__", type(function).__name__)
        if name == "linear":
            return
        if name in ("silu", "swish"):
            before = self.last
            self.node("Sigmoid")
            self.nodes.append(
                self.onnx.helper.make_node("Mul", [before, self.last], ["s" + before])
            )
            self.last = "s" + before
        elif name == "gelu":
            self.gelu()
        elif name in ACTIVATIONS:
            operator, attributes = ACTIVATIONS[name]
            self.node(operator, **attributes)
        else:
            raise NotNative(f"layer `{layer.name}` has the activation `{name}`")

    def gelu(self) -> None:
        """`x / 2 * (1 + erf(x / sqrt 2))`"""
        before = self.last
        self.node("Div", (np.array([np.sqrt(2.0)]),))
        self.node("Erf")
        self.node("Add", (np.array([1.0]),))
        self.nodes.append(self.onnx.helper.make_node("Mul", [before, self.last], ["g" + before]))
        self.last = "g" + before
        self.node("Mul", (np.array([0.5]),))

    def affine(self, scale: Floats, shift: Floats) -> None:
        """`scale * x + shift`"""
        self.node("Mul", (scale,))
        self.node("Add", (shift,))

    def finish(self) -> bytes:
        """The whole model."""
        helper, real = self.onnx.helper, self.onnx.TensorProto.FLOAT
        self.nodes.append(helper.make_node("Identity", [self.last], ["y"]))
        graph = helper.make_graph(
            self.nodes,
            "keras",
            [helper.make_tensor_value_info("x", real, [None, self.width])],
            [helper.make_tensor_value_info("y", real, [None, None])],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSETS[""])]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        content: bytes = model.SerializeToString()
        return content


def _dense(writer: Writer, layer: Any) -> None:
    writer.node("MatMul", (_numbers(layer.kernel),))
    if layer.use_bias:
        writer.node("Add", (_numbers(layer.bias),))
    writer.activation(layer.activation, layer)


def _activation(writer: Writer, layer: Any) -> None:
    writer.activation(layer.activation, layer)


def _relu(writer: Writer, layer: Any) -> None:
    if layer.max_value is not None or layer.threshold:
        raise NotNative(f"layer `{layer.name}` is a ReLU with a threshold or a largest value")
    if layer.negative_slope:
        writer.node("LeakyRelu", alpha=float(layer.negative_slope))
    else:
        writer.node("Relu")


def _leaky_relu(writer: Writer, layer: Any) -> None:
    writer.node("LeakyRelu", alpha=float(layer.negative_slope))


def _elu(writer: Writer, layer: Any) -> None:
    writer.node("Elu", alpha=float(layer.alpha))


def _softmax(writer: Writer, layer: Any) -> None:
    if layer.axis not in (-1, 1):
        raise NotNative(f"layer `{layer.name}` is a softmax over the rows")
    writer.node("Softmax", axis=-1)


def _batch_normalization(writer: Writer, layer: Any) -> None:
    """`gamma * (x - mean) / sqrt(variance + epsilon) + beta`"""
    if layer.axis not in (-1, 1):
        raise NotNative(f"layer `{layer.name}` normalises another axis than the last")
    mean = _numbers(layer.moving_mean)
    scale = 1.0 / np.sqrt(_numbers(layer.moving_variance) + layer.epsilon)
    scale = scale * _numbers(layer.gamma) if layer.scale else scale
    beta = _numbers(layer.beta) if layer.center else 0.0
    writer.affine(scale, beta - mean * scale)


def _normalization(writer: Writer, layer: Any) -> None:
    """`(x - mean) / deviation`, or back"""
    mean, variance = _numbers(layer.mean).reshape(-1), _numbers(layer.variance).reshape(-1)
    deviation = np.maximum(np.sqrt(variance), 1e-7)
    if layer.invert:
        writer.affine(deviation, mean)
    else:
        writer.affine(1.0 / deviation, -mean / deviation)


def _rescaling(writer: Writer, layer: Any) -> None:
    """`scale * x + offset`"""
    scale, offset = np.atleast_1d(layer.scale), np.atleast_1d(layer.offset)
    writer.affine(scale.astype(np.float64), offset.astype(np.float64))


LAYERS: dict[str, Callable[[Writer, Any], None]] = {
    "Activation": _activation,
    "BatchNormalization": _batch_normalization,
    "Dense": _dense,
    "ELU": _elu,
    "LeakyReLU": _leaky_relu,
    "Normalization": _normalization,
    "ReLU": _relu,
    "Rescaling": _rescaling,
    "Softmax": _softmax,
}
