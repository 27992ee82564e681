"""What the trials of an experiment share: data, problem, set, and how batches arrive."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw import _checks
from fastfw._csr import csr_parts, is_sparse
from fastfw.datasets import Split, load
from fastfw.experiments.methods import Method, Sizes, default_sizes
from fastfw.experiments.trials import Arrays, Task
from fastfw.learners._method import Constants
from fastfw.network import OneHiddenLayer
from fastfw.problems import SoftmaxRegression
from fastfw.regret import BestDecision, best_fixed_decision
from fastfw.schedules import PowerSchedule
from fastfw.sets import RowL1Ball
from fastfw.streams import Dataset, IndexedStream, iid_stream, sorted_stream
from fastfw.traces import Trace, log_spaced, trace

# --- data and sizes ---------------------------------------------------------------------------


def name_of(data: str | os.PathLike[str]) -> str:
    """Return a data set's name for tables and files; a path may hold bytes that are no text."""
    return os.fspath(data).encode("utf-8", "replace").decode()


def take_data(
    data: Any,
    root: str | os.PathLike[str] | None,
    dtype: npt.DTypeLike = np.float64,
    label: str | None = None,
) -> tuple[str, Dataset, Dataset | None]:
    """Return a name for the data, the data, and test data where they come along.

    `dtype` and `label` are for data that are loaded.
    """
    name, test = "data", None
    if isinstance(data, str | os.PathLike):
        name = name_of(data)
        data = load(data, root=root, dtype=np.dtype(dtype), label=label)
    elif label is not None:
        raise ValueError("label: it is for the path of a CSV file, not for data itself")
    if isinstance(data, Split):
        test = Dataset(data.X_test, data.y_test) if np.size(data.y_test) else None
        data = data[:2]
    if not isinstance(data, Dataset):
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise TypeError(
                "data must be the name of a data set, a path, a Dataset or a pair (X, y), but it "
                f"is {_checks.describe(data)}"
            )
        data = Dataset(*data)
    _checks.fewer_classes_than_rows(data.y)
    return name, data, test


def fingerprint(*data: Dataset) -> str:
    """Return a digest of features and labels.

    >>> a, b = Dataset(np.eye(2), [0, 1]), Dataset(np.eye(2), [1, 0])
    >>> fingerprint(a) == fingerprint(Dataset(np.eye(2), [0, 1])), fingerprint(a) == fingerprint(b)
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in data:
        parts: Iterable[Any] = part.codes or (csr_parts(part.X) if is_sparse(part.X) else (part.X,))
        for array in (*parts, part.y):
            digest.update(f"{array.shape} {array.dtype.str}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def check_sizes(trials: Any, seed: Any, radius: Any, **counts: Any) -> range:
    """Check what can be checked before the data is loaded, and return the seeds of the trials."""
    trials = _checks.positive_int(trials, "trials")
    first = _checks.positive_int(seed, "seed", minimum=0)
    for argument, value in counts.items():
        if value is not None:
            _checks.positive_int(value, argument)
    if radius is not None:
        _checks.positive_float(radius, "radius")
    return range(first, first + trials)


def constants_of(
    methods: Iterable[Method], preset: Mapping[str, Constants], **given: Any
) -> dict[Method, Constants]:
    """Return a preset's constants, theory's where it has none; given ones go to who takes them."""
    found = {}
    for method in methods:
        own = preset.get(method.name, Constants())
        for name, value in given.items():
            if value is not None and not method.offline and getattr(method, name):
                usual = isinstance(value, PowerSchedule) and value.offset == 1.0
                pair: Any = (value.c, value.e) if usual else value
                own = own._replace(**{name: pair})
        found[method] = own
    return found


def _check_scale(data: Dataset, radius: float) -> None:
    """Refuse logits so large that they, or what is computed from them, overflow."""
    largest = float(np.abs(data.X).max())
    limit = 1e100 if data.dtype == np.float64 else 1e15
    if max(radius, 1.0) * largest > limit:
        raise ValueError(
            f"radius: {radius:g} with features up to {largest:g} allows logits that overflow in "
            f"{data.dtype}; at most {limit:g} is wanted of their product: rescale X or take a "
            "smaller radius"
        )


# --- set-ups ----------------------------------------------------------------------------------

_FOUND = ("decision", "value", "gap", "seconds", "iterations", "n_samples")


@dataclass(frozen=True)
class Setup:
    """What learners see, what their decisions are judged on, and all else that trials share.

    `options` are arguments of `Method.build`; `describe` tells trials apart from those of other
    set-ups, where they are kept.
    """

    train: Dataset
    judged: Dataset
    problem: Any
    set: Any
    setting: str
    sizes: Sizes
    options: Mapping[str, Any]
    describe: Mapping[str, Any]
    test: Dataset | None = None
    kept: bool = False

    @cached_property
    def digest(self) -> str:
        """A digest of all data."""
        own = {id(data): data for data in (self.train, self.judged, self.test) if data is not None}
        return fingerprint(*own.values())

    @cached_property
    def kind(self) -> tuple[str, ...]:
        """What decides which code is compiled, and how much memory is touched."""
        layout = "bytes" if self.train.codes else "sparse" if self.train.is_sparse else "dense"
        sizes = self.train.shape, self.train.dtype, self.sizes.batch_size, *self.options.items()
        return (type(self.problem).__name__, self.setting, layout, *map(str, sizes))

    def stream(self, seed: int, rounds: int | None = None) -> IndexedStream:
        """Return the batches of a trial."""
        shape = {"batch_size": self.sizes.batch_size, "rounds": rounds or self.sizes.rounds}
        if self.setting == "adversarial":
            return sorted_stream(self.train, None, **shape)
        return iid_stream(self.train, None, **shape, seed=seed)

    def learner(self, method: Method, constants: Constants, rounds: int, seed: int) -> Any:
        """Return the learner of a trial, whose draws have nothing to do with those of batches."""
        own = seed if self.setting == "network" else (seed, 1)
        return method.build(
            self.problem, self.set, constants, rounds=rounds, seed=own, **self.options
        )

    def learners(self, methods: Mapping[Method, Constants], trials: int) -> list[Any]:
        """Return a learner of each method; refuse what cannot be, and what no memory can hold."""
        sizes = self.sizes
        too_large = MemoryError(
            f"rounds, batch_size: the curves of {len(methods)} methods, {trials} trials and "
            f"{sizes.rounds} rounds, or a batch of {sizes.batch_size} rows, or the base learners "
            "of a meta method, do not fit into memory; ask for less"
        )
        try:
            made = [self.learner(*pair, sizes.rounds, 0) for pair in methods.items()]
        except (MemoryError, OverflowError):
            raise too_large from None
        try:
            np.empty((3 * len(methods), trials, sizes.rounds))
            np.empty((2, sizes.batch_size), dtype=np.intp)
            for learner in made:
                np.empty((getattr(learner, "inner_steps", 1), *self.set.shape), self.train.dtype)
        except (MemoryError, OverflowError, ValueError):  # NumPy's, of shapes beyond all bounds
            raise too_large from None
        self.stream(0)  # refuses more batches than there are rows for
        return made

    def comparator(self, tol: float) -> Task:
        """Return the work of finding the best fixed decision for the rows that are judged."""
        settings = None
        if self.kept:
            rows: Mapping[str, Any] = {"rows": "all"}
            if self.judged.n_samples < self.train.n_samples:
                rows = {"rows": "sorted", "n": self.judged.n_samples}
            settings = {"what": "comparator", "tolerance": tol, "data": self.digest}
            settings |= {**self.describe, **rows}
        shapes = {"decision": tuple(self.set.shape), "value": (), "gap": ()}
        return Task("comparator", partial(self._find, tol), settings, shapes)

    def trial(
        self, label: str, what: str, method: Method, constants: Constants, seed: int,
        rounds: int | None = None, **follow: Any,
    ) -> Task:  # fmt: skip
        """Return the work of one trial.

        It gives the loss of every round, or, with ``checkpoints=`` and ``gap=``, what the
        decisions are worth at a few rounds.
        """
        T = self.sizes.rounds if rounds is None else rounds
        k = len(log_spaced(T + 1, follow["checkpoints"])) if follow else T
        settings = None
        if self.kept and not any(callable(value) for value in constants):
            own = {**constants._asdict(), **(self.options if method.meta else {})}
            settings = {
                "what": what, "method": method.name, "seed": seed, "data": self.digest,
                "setting": self.setting, "rounds": T, "batch_size": self.sizes.batch_size,
                "constants": own, **self.describe, **follow,
            }  # fmt: skip
        return Task(
            label,
            partial(self._follow if follow else self._play, method, constants, T, seed, **follow),
            settings,
            {"losses": (k,), "seconds": (k,)},
            (method.label, *self.kind),
            partial(self._run, method, constants, min(T, 3), 0),
        )

    def trials(
        self, what: str, methods: Mapping[Method, Constants], seeds: range,
        rounds: Mapping[Method, int] | None = None, note: str = "", **follow: Any,
    ) -> list[Task]:  # fmt: skip
        """Return the trials of all methods; they take turns: a slow machine slows all of them."""
        return [
            self.trial(
                f"{method.label}{note}, trial {i}", what, method, own, seed,
                None if rounds is None else rounds[method], **follow,
            )
            for i, seed in enumerate(seeds, start=1)
            for method, own in methods.items()
        ]  # fmt: skip

    # ------------------------------------------------------------------ how it is done

    def _run(
        self, method: Method, constants: Constants, rounds: int, seed: int, checkpoints: int = 0
    ) -> Any:
        learner = self.learner(method, constants, rounds, seed)
        keep = log_spaced(rounds + 1, checkpoints) if checkpoints else ()
        if method.offline:
            return learner.fit(self.train, iterations=rounds, checkpoints=keep)
        return learner.run(self.stream(seed, rounds), checkpoints=keep)

    def _play(self, method: Method, constants: Constants, rounds: int, seed: int) -> Arrays:
        ran = self._run(method, constants, rounds, seed)
        decision = np.asarray(ran.decision, dtype=np.float64)
        last = np.array(float(self.problem.loss(decision, self.judged)))
        nonzeros = np.array(np.count_nonzero(decision))
        arrays = {"losses": ran.losses, "seconds": ran.seconds, "last": last, "nonzeros": nonzeros,
                  **_costs(ran)}  # fmt: skip
        if self.test is not None:
            arrays["accuracy"] = np.array(self.problem.accuracy(decision, self.test.X, self.test.y))
        return arrays

    def _follow(
        self, method: Method, constants: Constants, rounds: int, seed: int,
        checkpoints: int, gap: bool,
    ) -> Arrays:  # fmt: skip
        ran = self._run(method, constants, rounds, seed, checkpoints)
        if self.setting != "network":  # accuracies are not asked for
            losses = [float(self.problem.loss(x, self.judged)) for x in ran.decisions]
            return {"rounds": np.asarray(ran.checkpoints), "seconds": ran.checkpoint_seconds,
                    "losses": np.array(losses), **_costs(ran)}  # fmt: skip
        X, y = (None, None) if self.test is None else (self.test.X, self.test.y)
        traced = trace(ran, self.problem, self.set, self.train, X_test=X, y_test=y, gap=gap)
        known = {name: value for name, value in vars(traced).items() if value is not None}
        return {**known, "total": np.array(float(ran.seconds[-1])), **_costs(ran)}

    def _find(self, tol: float) -> Arrays:
        rows = self.judged
        best = best_fixed_decision(self.problem, self.set, rows.X, rows.y, tol=tol)
        return {name: np.array(getattr(best, name)) for name in _FOUND}


def _costs(ran: Any) -> Arrays:
    return {"work": np.array(ran.gradient_evaluations), "oracle": np.array(ran.lmo_calls)}


def best_of(arrays: Arrays, problem: Any) -> BestDecision:
    """Return the best fixed decision that `Setup.comparator` found."""
    numbers: dict[str, Any] = {name: arrays[name].item() for name in _FOUND[1:]}
    return BestDecision(decision=arrays["decision"], problem=problem, **numbers)


def trace_of(arrays: Arrays) -> Trace:
    """Return the trace that a trial of a network gave."""
    return Trace(**{field.name: arrays.get(field.name) for field in fields(Trace)})  # type: ignore[arg-type]


def regression(
    name: str,
    data: Dataset,
    setting: str,
    *,
    rounds: int | None,
    batch_size: int | None,
    radius: float | None,
    dtype: npt.DTypeLike = np.float64,
    all_rows: bool = False,
    kept: bool = False,
    **options: Any,
) -> Setup:
    """Set up softmax regression over rows of bounded l1 norm.

    Decisions are judged on the rows that are played, or on all.
    """
    default = default_sizes(name, setting, data.n_samples)
    r = default.radius if radius is None else float(radius)
    sizes = Sizes(rounds or default.rounds, batch_size or default.batch_size, r, default.descent)
    if data.n_classes < 2:
        raise ValueError("y: every label is 0; at least two classes (0, 1, ...) are wanted")
    train, exact = data.astype(dtype), data.astype(np.float64)
    _check_scale(train, r)
    problem = SoftmaxRegression(data.n_features, data.n_classes)
    ball = RowL1Ball(shape=problem.shape, radius=r)
    describe = {"radius": r, "dtype": str(train.dtype)}
    setup = Setup(train, exact, problem, ball, setting, sizes, options, describe, kept=kept)
    if all_rows or setting == "stochastic" or sizes.rounds * sizes.batch_size >= data.n_samples:
        return setup
    rows = np.concatenate([block.ravel() for block in setup.stream(0).row_blocks(sizes.rounds)])
    return replace(setup, judged=Dataset(exact.X[rows], exact.y[rows]))


def network(
    name: str,
    data: Dataset,
    test: Dataset | None,
    *,
    hidden: int,
    rounds: int | None,
    batch_size: int | None,
    radius: float | None,
    dtype: npt.DTypeLike = np.float64,
    init: str | None = None,
    kept: bool = False,
) -> Setup:
    """Set up the network with one hidden layer over l1 balls of one radius."""
    default = default_sizes(name, "network", data.n_samples)
    r = default.radius if radius is None else float(radius)
    sizes = Sizes(rounds or default.rounds, batch_size or default.batch_size, r)
    train = data.astype(dtype)
    problem = OneHiddenLayer(train.n_features, hidden, max(train.n_classes, 2))
    describe = {"radius": r, "dtype": str(train.dtype), "hidden": hidden, "init": init}
    return Setup(
        train, train, problem, problem.l1_balls(r, r), "network", sizes, {"init": init}, describe,
        test, kept,
    )  # fmt: skip
