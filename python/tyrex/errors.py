"""What can go wrong: every error says where, what, and what was expected."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["DataError", "ModelError", "ParameterError", "SchemaError", "TyrexError", "need"]


class TyrexError(Exception):
    """Anything tyrex refuses. Its subclasses are also `ValueError`s."""


class DataError(TyrexError, ValueError):
    """A table or a cell of it is not what the schema or the model expects."""


class SchemaError(TyrexError, ValueError):
    """A schema contradicts itself, or does not fit the data or the model."""


class ParameterError(TyrexError, ValueError):
    """A parameter is outside its range."""


class ModelError(TyrexError, ValueError):
    """A model cannot be read, or is not a model of a probability."""


def need(package: str, purpose: str, *, install: str | None = None) -> ModuleType:
    """The package, or an `ImportError` that says what to install and why.

    >>> need("no_such_package", "to look into the future")
    Traceback (most recent call last):
    ImportError: no_such_package is needed to look into the future; install it with \
`pip install no_such_package`
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        # A package that is there but misses a part of its own is another matter.
        if error.name is None or error.name.split(".")[0] != package.split(".")[0]:
            raise
        name = install or package.split(".")[0]
        message = f"{package} is needed {purpose}; install it with `pip install {name}`"
        raise ImportError(message, name=package) from None
