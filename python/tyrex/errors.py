"""Exceptions: every error names the place, the problem, and the expected value."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["DataError", "ModelError", "ParameterError", "SchemaError", "TyrexError", "need"]


class TyrexError(Exception):
    """The base class of tyrex's errors. Its subclasses are also `ValueError`s."""


class DataError(TyrexError, ValueError):
    """A table, or one of its cells, does not match the schema or the model."""


class SchemaError(TyrexError, ValueError):
    """A schema contradicts itself, or does not fit the data or the model."""


class ParameterError(TyrexError, ValueError):
    """A parameter is outside its range."""


class ModelError(TyrexError, ValueError):
    """A model cannot be read, or is not a model of a probability."""


def need(package: str, purpose: str, *, install: str | None = None) -> ModuleType:
    """Imports a package, or raises an `ImportError` that says what to install and why.

    >>> need("no_such_package", "to look into the future")
    Traceback (most recent call last):
    ImportError: no_such_package is needed to look into the future; install it with \
`pip install no_such_package`
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        # An installed package with a missing dependency is a different error.
        if error.name is None or error.name.split(".")[0] != package.split(".")[0]:
            raise
        name = install or package.split(".")[0]
        message = f"{package} is needed {purpose}; install it with `pip install {name}`"
        raise ImportError(message, name=package) from None
