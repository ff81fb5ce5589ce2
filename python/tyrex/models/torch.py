"""PyTorch modules."""

from __future__ import annotations

import copy
import inspect
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError, need
from . import network
from .converted import Floats, Function, NotNative, Onnx
from .graph import OPSETS
from .outputs import Outputs

if TYPE_CHECKING:
    from ..data import Frame

PURPOSE = "to read PyTorch models"
#: Rows scored at once.
BATCH = 16384


@dataclass(frozen=True)
class Module:
    """A snapshot of a module, ready to score."""

    module: Any
    framework: str = "torch"

    @classmethod
    def of(cls, module: Any) -> Module:
        """A copy of the module; the original is not changed."""
        module = getattr(module, "_orig_mod", module)  # the module inside torch.compile's wrapper
        try:
            return cls(copy.deepcopy(module).eval())
        except Exception as problem:  # the user's module may raise any error
            message = f"the torch model cannot be copied: {problem}"
            raise ModelError(message) from problem

    def batches(self, matrix: Floats) -> Iterator[Any]:
        """The rows, in the module's precision and on its device."""
        torch = need("torch", PURPOSE)
        parameters = [*self.module.parameters(), *self.module.buffers()]
        real = [p for p in parameters if p.is_floating_point()]
        dtype, device = (real[0].dtype, real[0].device) if real else (torch.float32, "cpu")
        for start in range(0, max(len(matrix), 1), BATCH):
            rows = np.ascontiguousarray(matrix[start : start + BATCH])
            yield torch.tensor(rows, dtype=dtype, device=device)

    def answers(self, matrix: Floats) -> Any:
        """The output of the module for the rows of a matrix."""
        torch = need("torch", PURPOSE)
        parts = []
        with torch.no_grad():
            for batch in self.batches(matrix):
                answer = self.module(batch)
                if not isinstance(answer, torch.Tensor):
                    raise ModelError(
                        f"the torch model returns a {type(answer).__name__}, expected one tensor"
                    )
                parts.append(answer.detach().to("cpu", torch.float64))
        if parts[0].ndim == 0 and len(matrix) == 1:
            return parts[0].reshape(1)
        return torch.cat(parts)

    has_gradients = True

    def gradients(self, matrix: Floats, outputs: Outputs) -> Floats:
        """The exact gradient of the probability."""
        torch = need("torch", PURPOSE)
        parts = []
        for batch in self.batches(matrix):
            batch.requires_grad_(True)
            with torch.enable_grad():
                total = _probability(torch, self.module(batch), len(batch), outputs).sum()
                (gradient,) = torch.autograd.grad(total, batch)
            parts.append(gradient.to("cpu", torch.float64).numpy())
        return np.concatenate(parts)

    def export(self, width: int) -> bytes:
        """The module as ONNX."""
        torch = need("torch", PURPOSE)
        example = torch.zeros(2, width)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # A graph has one path; a module with data-dependent control flow has several.
            warnings.simplefilter("error", torch.jit.TracerWarning)
            try:
                module = copy.deepcopy(self.module).to("cpu", torch.float32)
                return _export(torch, module, example)
            except Exception as problem:  # exporters raise many types of errors
                text = " ".join(str(problem).split())
                raise NotNative(f"it cannot be exported to ONNX: {text[:200]}") from None


def _export(torch: Any, module: Any, example: Any) -> bytes:
    """The exporter that needs no further package, while torch has it."""
    names = {"input_names": ["x"], "output_names": ["y"], "opset_version": OPSETS[""]}
    known = inspect.signature(torch.onnx.export).parameters
    if "dynamic_axes" not in known:
        need("onnxscript", PURPOSE)
        rows = ({0: torch.export.Dim("rows")},)
        program = torch.onnx.export(module, (example,), dynamic_shapes=rows, verbose=False, **names)
        modern: bytes = program.model_proto.SerializeToString()
        return modern
    buffer = io.BytesIO()
    torch.onnx.export(
        module,
        (example,),
        buffer,
        dynamic_axes={"x": {0: "rows"}, "y": {0: "rows"}},
        **({"dynamo": False} if "dynamo" in known else {}),
        **names,
    )
    return buffer.getvalue()


def _probability(torch: Any, answers: Any, rows: int, outputs: Outputs) -> Any:
    """As `Outputs.probability`, in tensors."""
    table = answers.reshape(rows, -1)
    if outputs.kind == "logit":
        table = torch.sigmoid(table) if table.shape[1] == 1 else torch.softmax(table, dim=1)
    elif outputs.kind == "log":
        table = torch.exp(table)
    if table.shape[1] == 1:
        table = torch.cat([1.0 - table, table], dim=1)
    return table[:, list(outputs.classes)].sum(dim=1)


def convert(
    module: Any, frame: Frame, favourable: Any, logits: bool | None, preprocessor: Any
) -> Onnx | Function:
    """A module as ONNX; as a function with gradients if it cannot be exported."""
    return network.convert(Module.of(module), frame, favourable, logits, preprocessor)
