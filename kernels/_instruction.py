"""Functions that kernels write in the compiler's own words, with a body for Python as well."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba.core.extending import _Intrinsic

__all__ = ["instruction"]

F = TypeVar("F", bound=Callable[..., Any])


class _Instruction(_Intrinsic):  # type: ignore[misc]
    """Code put in place by kernels, a function for Python."""

    def __init__(self, function: Callable[..., Any], write: Callable[..., Any]) -> None:
        super().__init__(function.__name__, write)
        functools.update_wrapper(self, function)
        self._function = function
        self._register()

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


def instruction(write: Callable[..., Any]) -> Callable[[F], F]:
    """Let kernels have code in place of a function that Python calls.

    `write` is as Numba's `intrinsic` takes it: from the types of the arguments to a signature, and
    what builds the code.
    """

    def decorate(function: F) -> F:
        return cast(F, _Instruction(function, write))

    return decorate
