"""Losses of one's own: a problem made of a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import (
    as_array,
    batch_parts,
    choice,
    describe,
    is_pair,
    read_only,
    real_array,
    reworded,
)
from fastfw._numba import compiled, is_compiled, short_error
from fastfw.problems import Rows, all_rows
from fastfw.sets._convex import shape_of
from fastfw.streams import Batch

__all__ = ["FunctionProblem", "problem_from_function", "what_is_not_finite"]


class FunctionProblem:
    """A problem whose loss and gradient come from a function; see `problem_from_function`.

    Parameters
    ----------
    loss_and_gradient, shape, reduction
        As there, where they are checked.
    """

    def __init__(
        self, loss_and_gradient: Callable[..., Any], shape: tuple[int, ...], reduction: str
    ) -> None:
        self._function = self._called = loss_and_gradient
        self._shape = shape
        self._reduction = reduction
        self._pairs, self._either = _takes_pairs(loss_and_gradient)

    def __getstate__(self) -> dict[str, Any]:
        """Keep of a compiled function of this package what names it."""
        own = self._called is not self._function
        function: Any = self._function
        return {**vars(self), "_function": function.py_func if own else function}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({"_called": state["_function"], **state})
        if self._called is not self._function:
            self._function = compiled(self._function)

    @classmethod
    def _of_both(
        cls, rounds: Callable[..., Any], called: Callable[..., Any], shape: tuple[int, ...]
    ) -> FunctionProblem:
        """Return sums by a function for compiled rounds, and its equal for calls from Python."""
        function = compiled(rounds)
        problem = cls(function if is_compiled(function) else called, shape, "sum")
        problem._called = called
        return problem

    @property
    def function(self) -> Callable[..., Any]:
        """The function it was made of."""
        return self._function

    @property
    def takes_pairs(self) -> bool:
        """Whether the function takes (x, X, y) rather than (x, batch)."""
        return self._pairs

    @property
    def compiled(self) -> bool:
        """Whether the function was compiled by Numba, so that compiled rounds can call it."""
        return is_compiled(self._function)

    @property
    def first_layer(self) -> tuple[int, int]:
        """Shape of the parameters that are known to be linear in the features: none are."""
        return 0, 1

    def kernel_model(self) -> int:
        """Return what `kernel_rounds` take for a model: rows of a point, 0 if it has one axis."""
        return self._shape[0] if len(self._shape) == 2 else 0

    def kernel_rounds(self) -> Any:
        """Return compiled rounds that call the function, see ``kernels.rounds``."""
        from fastfw.kernels.functions import function_rounds
        from fastfw.kernels.rounds import linear_rounds

        return function_rounds(linear_rounds, self._function, self._pairs, len(self._shape) == 2)

    def rows(
        self,
        batch: object,
        dtype: npt.DTypeLike | None = None,
        *,
        finite: bool = True,
        coded: bool = False,
    ) -> Rows:
        """Return a batch as compiled rounds take it; floats in a dtype where one is given."""
        if isinstance(batch, Batch):
            data = batch.data if dtype is None else batch.data.astype(dtype)
            return Rows(_plain(data.X, dtype), data.y, batch.rows)
        X, y = batch_parts(batch) if self._pairs else (self._one_array(batch), None)
        A = _plain(X, dtype)
        b = np.zeros(len(A), np.intp) if y is None else _plain(y, dtype)
        if len(A) == 0 or len(A) != len(b):
            raise ValueError(
                f"a batch must have rows, as many of X as of y, but it has {len(A)} and {len(b)}"
            )
        return Rows(A, b, all_rows(len(A)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the decisions."""
        return self._shape

    @property
    def reduction(self) -> str:
        """``"mean"`` or ``"sum"``: what the loss is over the rows of a batch."""
        return self._reduction

    def loss_and_gradient(self, x: npt.ArrayLike, batch: object) -> tuple[float, npt.NDArray[Any]]:
        """Return loss and gradient at x on a batch, from one call of the function.

        Raises TypeError or ValueError where the batch is not a pair and one is wanted, where Numba
        cannot compile the function for it, and where it writes to what it is given or does not
        return a number and an array of numbers of the decisions' shape.
        """
        parts = batch_parts(batch) if self._pairs else (batch,)
        return self._evaluate(*map(read_only, (np.asarray(x), *parts)))

    def of_rows(self, x: npt.ArrayLike, rows: Rows) -> tuple[float, npt.NDArray[Any]]:
        """Return the same for rows that `rows` gave, in copies to spoil, as in compiled rounds."""
        X, y = rows.X[rows.rows], rows.y[rows.rows]
        return self._evaluate(np.array(x), *((X, y) if self._pairs else (X,)))

    def _evaluate(self, *given: Any) -> tuple[float, npt.NDArray[Any]]:
        """Return what the function does, checked."""
        try:
            found = self._called(*given)
        except Exception as error:
            hint = ""
            if self._either and is_pair(given[1]):
                hint = (
                    f"; as its further parameters have defaults, {self._name} takes (x, batch), "
                    "and it was given the pair (X, y) as its batch: write it as "
                    f"{self._name}(x, X, y), without a default for y"
                )
            self.raise_short(error, hint)
            if hint and isinstance(error, TypeError | ValueError):
                raise reworded(error, str(error).rstrip(".") + hint) from error
            raise
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise TypeError(
                f"{self._name} must return a pair (loss, gradient), but it returned {_kind(found)}"
            )
        loss, gradient = as_array(found[0], "loss"), as_array(found[1], "gradient")
        if loss.ndim or loss.dtype.kind not in "fiub":
            raise TypeError(
                f"{self._name} must return a number as its loss, but it returned {_kind(found[0])}"
            )
        if gradient.shape != self._shape:
            raise ValueError(
                f"{self._name} must return a gradient of shape {self._shape}, but it returned "
                f"{_kind(found[1])}"
            )
        return float(loss), real_array(gradient, f"the gradient that {self._name} returns")

    def raise_short(self, error: Exception, hint: str = "") -> None:
        """Raise what Numba says of the function in one line, if the error is of Numba's making."""
        short_error(self._function, self._name, error, hint)

    def loss(self, x: npt.ArrayLike, batch: object) -> float:
        """Return the loss at x on a batch."""
        return self.loss_and_gradient(x, batch)[0]

    def gradient(self, x: npt.ArrayLike, batch: object) -> npt.NDArray[Any]:
        """Return the gradient at x on a batch."""
        return self.loss_and_gradient(x, batch)[1]

    def _one_array(self, batch: Any) -> npt.NDArray[Any]:
        """Return a batch of compiled rounds of a function (x, batch), one array."""
        if not (isinstance(batch, tuple) and any(isinstance(part, np.ndarray) for part in batch)):
            with suppress(TypeError, ValueError):  # of rows of different lengths
                array = np.asarray(batch)
                if not array.dtype.hasobject:
                    return array
        raise TypeError(
            f"{self._name} takes (x, batch), so batches of compiled rounds must be single arrays "
            f"with a row for each sample, but one is {_kind(batch)}; for pairs (X, y) "
            f'write it as {self._name}(x, X, y), without defaults, or use engine="steps"'
        )

    @property
    def _name(self) -> str:
        return getattr(self._function, "__name__", "loss_and_gradient")

    def __repr__(self) -> str:
        return f"<problem from {self._name}, shape {self._shape}, reduction {self._reduction!r}>"


def problem_from_function(
    loss_and_gradient: Callable[..., Any],
    shape: int | Sequence[int],
    *,
    reduction: str = "mean",
) -> FunctionProblem:
    """Make a problem of a function that returns a loss and its gradient.

    Parameters
    ----------
    loss_and_gradient : callable
        Either of two parameters, ``(x, batch)``: the batch as it comes from the stream, whatever it
        is. Or of three, ``(x, X, y)``: the parts of a batch that is a pair or has ``.X`` and
        ``.y``. It returns a pair: the loss, a number, and the gradient, an array of x's shape.
        Arrays are handed over read-only: x, and those of the batch.
    shape : int or tuple of int
        Shape of the decisions.
    reduction : {"mean", "sum"}
        Whether the loss is a mean or a sum over the rows of a batch. Sub-batches and the bounds of
        regret curves are scaled accordingly.

    Returns
    -------
    FunctionProblem
        With ``shape``, ``loss(x, batch)``, ``gradient(x, batch)`` and ``loss_and_gradient``: what
        every learner takes, with any set.

    Raises
    ------
    TypeError, ValueError
        If an argument is not such a function, shape or name.

    Notes
    -----
    A function that Numba compiled (``@numba.njit``) is called from compiled code, without Python
    between rounds, by the methods of one recursion, such as `ORGFW`, over the sets that the
    argument `engine` of `ORGFW` names, if decisions have one axis or two; batches are then
    arrays with a row for each sample. Everywhere else it is called as any other function is.

    Examples
    --------
    The squared distance to the mean of a batch of points, over a simplex:

    >>> import numpy as np, fastfw as fw
    >>> def distance(x, points):
    ...     away = x - points.mean(axis=0)
    ...     return 0.5 * away @ away, away
    >>> problem = fw.problem_from_function(distance, shape=3)
    >>> learner = fw.ORGFW(problem, fw.Simplex(3))
    >>> result = learner.run([np.array([[0.5, 0.5, 0.0]])] * 200)
    >>> result.average.round(2)
    array([0.5 , 0.49, 0.01])
    """
    if isinstance(loss_and_gradient, type) or not callable(loss_and_gradient):
        raise TypeError(
            "loss_and_gradient must be a function (x, batch) or (x, X, y) that returns a loss and "
            f"a gradient, but it is {describe(loss_and_gradient)}"
        )
    choice(reduction, "reduction", ("mean", "sum"))
    return FunctionProblem(loss_and_gradient, shape_of(shape), reduction)


def what_is_not_finite(problem: Any, loss: float, advice: str = "") -> str:
    """Say what is not finite in a round, the loss or else the estimate, with advice.

    The advice is for problems of this package; a function that returned it is named instead.
    """
    own = isinstance(problem, FunctionProblem)
    if not np.isfinite(loss):
        return f"{problem._name} returned the loss {loss}" if own else f"the loss is {loss}{advice}"
    if own:
        return f"the estimate made of the gradients that {problem._name} returned is not finite"
    return f"the gradient estimate overflowed{advice}"


def _plain(array: Any, dtype: npt.DTypeLike | None) -> Any:
    """Return an array of one dimension or more as kernels take it: C-contiguous, read-only."""
    given = np.asarray(array)
    if given.dtype.kind not in "fiub" or given.ndim == 0:
        raise TypeError(
            "batches of compiled functions must be arrays of numbers with a row for each sample, "
            f"but one has dtype {given.dtype} and shape {given.shape}"
        )
    wanted = given.dtype.newbyteorder("=")
    if given.dtype.kind == "f":
        wanted = np.dtype(np.float64 if dtype is None else dtype)
    canonical = np.require(given, wanted, ["C", "A"]).view()
    canonical.flags.writeable = False
    return canonical


def _kind(found: Any) -> str:
    """Describe what a function returned."""
    if isinstance(found, np.ndarray):
        return f"an array of shape {found.shape} and dtype {found.dtype}"
    if isinstance(found, tuple | list):
        return f"a {type(found).__name__} of length {len(found)}"
    return "None" if found is None else f"a {type(found).__name__}"


def _takes_pairs(function: Callable[..., Any]) -> tuple[bool, bool]:
    """Whether a function takes (x, X, y) rather than (x, batch), and whether it takes either."""
    try:
        signature = inspect.signature(getattr(function, "py_func", function))
    except (TypeError, ValueError):
        return False, False  # of built-in functions nothing is known
    two, three = (_binds(signature, n) for n in (2, 3))
    if not two and not three:
        raise TypeError(
            "loss_and_gradient must take (x, batch) or (x, X, y), but its parameters are "
            f"{signature}"
        )
    return not two, two and three


def _binds(signature: inspect.Signature, n: int) -> bool:
    try:
        signature.bind(*(None,) * n)
    except TypeError:
        return False
    return True
