"""Functions that kernels choose by the type of their first argument.

Features, models and sets are arrays, tuples, numbers or small named tuples. What differs between
them is a function with an implementation for each type, a kernel: the choice is made when a caller
is compiled, and costs nothing when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import models, register_model, typeof_impl

__all__ = ["ByType"]

#: Python's classes of values of Numba's types; of all others, arrays.
_CLASSES = ((types.BaseTuple, tuple), (types.NoneType, type(None)), (types.Integer, int))


def _class_of(kind: Any) -> type:
    if isinstance(kind, types.BaseNamedTuple):
        own: type = kind.instance_class
        return own
    return next((own for wide, own in _CLASSES if isinstance(kind, wide)), np.ndarray)


class ByType:
    """Calls the implementation for the class of the first argument, or else that for `object`.

    Classes that join the dictionary later are served as well.
    """

    def __init__(self, implementations: dict[Any, Callable[..., Any]]) -> None:
        self._implementations = implementations

    @property
    def names(self) -> str:
        """Names of the implementations."""
        return ", ".join(own.__name__ for own in self._implementations.values())

    def of(self, cls: type) -> Any:
        """Return the implementation for a class, None if there is none."""
        return self._implementations.get(cls, self._implementations.get(object))

    def __call__(self, *args: Any) -> Any:
        return self.of(type(args[0]))(*args)


class _Choice(types.Callable, types.Opaque):  # type: ignore[misc]
    """Numba's type of a `ByType`: its calls are those of the kernel chosen."""

    def __init__(self, chooser: ByType) -> None:
        self.chooser = chooser
        super().__init__(f"ByType({chooser.names})")

    @property
    def key(self) -> Any:
        return self.chooser

    def _chosen(self, args: Any) -> Any:
        chosen = self.chooser.of(_class_of(args[0]))
        return None if chosen is None else types.Dispatcher(chosen)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        chosen = self._chosen(args)
        return chosen and chosen.get_call_type(context, args, kws)

    def get_call_signatures(self) -> tuple[Any, bool]:
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
        return self._chosen(sig.args).get_impl_key(sig)


register_model(_Choice)(models.OpaqueModel)


@typeof_impl.register(ByType)  # type: ignore[untyped-decorator]
def _typeof(chooser: ByType, context: Any) -> _Choice:
    return _Choice(chooser)
