"""The methods that experiments can run: one table, which every new method joins with one entry.

Nothing heavy is imported here, so that the command line can list the methods at once.
"""

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "METHODS",
    "SETTINGS",
    "Method",
    "closest",
    "default_methods",
    "find_methods",
    "rounds_at_equal_work",
]

SETTINGS = ("stochastic", "adversarial")
"""How batches arrive: drawn at random, or sorted by label."""

SUB_BATCH = 4
"""Rows in a sub-batch of a meta method, as in the paper's experiments."""


@dataclass(frozen=True)
class Method:
    """One row of the table of methods.

    Parameters
    ----------
    name : str
        The name on the command line and in result files.
    label : str
        The name in tables and pictures, as the paper writes it.
    learner : str
        The name of the learner's class in `fastfw`.
    guarantees : tuple of str
        The settings in which the paper that the method comes from bounds its regret.
    default_in : tuple of str
        The settings in which it runs unless other methods are asked for.
    aliases : tuple of str
        Other names that are understood.
    momentum, rounds, eta, meta : bool
        Whether the learner takes a `momentum` schedule; the number of rounds; RegularizedOFW's
        constant; inner steps, sub-batches and `FTPL`.
    """

    name: str
    label: str
    learner: str
    guarantees: tuple[str, ...]
    default_in: tuple[str, ...] = ()
    aliases: tuple[str, ...] = field(default=(), repr=False)
    momentum: bool = False
    rounds: bool = False
    eta: bool = False
    meta: bool = False

    def build(
        self,
        problem: Any,
        ball: Any,
        *,
        rounds: int,
        seed: int | tuple[int, ...],
        step: Callable[[int], float] | None = None,
        momentum: Callable[[int], float] | None = None,
        eta: float | None = None,
        scale: float | None = None,
        inner_steps: int | None = None,
        sub_batch_size: int | None = SUB_BATCH,
    ) -> Any:
        """Make the learner; what it does not take is ignored, None means the learner's own.

        Parameters
        ----------
        problem, ball : problem, feasible set
            What the learner is for.
        rounds : int
            How many rounds it will be run for; passed on where the method wants to know.
        seed : int or tuple of int
            The seed of the learner's own draws.
        step, momentum : callable of t, or None
            Schedules.
        eta : float, optional
            RegularizedOFW's c in eta = c / T^(3/4).
        scale : float, optional
            c of the base learners `FTPL`.
        inner_steps : int, optional
            Inner steps of a meta method; its theory's number by default.
        sub_batch_size : int or None
            Rows in its sub-batches; None for whole batches.

        Returns
        -------
        learner
            A fresh learner that has seen no round.
        """
        import fastfw

        options: dict[str, Any] = {"seed": seed}
        if step is not None:
            options["step"] = step
        if momentum is not None and self.momentum:
            options["momentum"] = momentum
        if self.rounds:
            options["rounds"] = rounds
        if self.eta:
            options["eta"] = eta
        if self.meta:
            options["inner_steps"] = inner_steps
            options["sub_batch_size"] = sub_batch_size
            if scale is not None:
                options["base"] = fastfw.FTPL(scale=scale)
        return getattr(fastfw, self.learner)(problem, ball, **options)

    def caution(self, setting: str) -> str | None:
        """Say in one line what is not guaranteed in a setting; None where there is a bound.

        Parameters
        ----------
        setting : {"stochastic", "adversarial"}
            How the batches arrive.

        Returns
        -------
        str or None
            Such as ``"ORGFW has no regret guarantee in the adversarial setting"``.
        """
        if setting in self.guarantees:
            return None
        none = f"{self.label} has no regret guarantee"
        if setting == "adversarial":
            return f"{none} in the adversarial setting"
        # What holds for any batches holds for random ones.
        return f"{none} of its own in the stochastic setting; the one for any batches applies"


METHODS = (
    Method(
        name="orgfw",
        label="ORGFW",
        learner="ORGFW",
        guarantees=("stochastic",),
        default_in=("stochastic",),
        momentum=True,
    ),
    Method(
        name="morgfw",
        label="MORGFW",
        learner="MORGFW",
        guarantees=("adversarial",),
        default_in=("adversarial",),
        momentum=True,
        rounds=True,
        meta=True,
    ),
    Method(
        name="osfw",
        label="OSFW",
        learner="OSFW",
        guarantees=("stochastic",),
        default_in=("stochastic",),
        momentum=True,
    ),
    Method(
        name="ofw",
        label="OFW",
        learner="OFW",
        guarantees=("stochastic", "adversarial"),
        default_in=("adversarial",),
    ),
    Method(
        name="regularized-ofw",
        label="RegularizedOFW",
        learner="RegularizedOFW",
        guarantees=("adversarial",),
        default_in=("adversarial",),
        aliases=("rofw", "regularised-ofw"),
        rounds=True,
        eta=True,
    ),
    Method(
        name="oaw",
        label="OAW",
        learner="OAW",
        guarantees=("stochastic",),
    ),
    Method(
        name="metafw",
        label="MetaFrankWolfe",
        learner="MetaFrankWolfe",
        guarantees=("adversarial",),
        aliases=("meta-frank-wolfe",),
        momentum=True,
        rounds=True,
        meta=True,
    ),
)
"""Every method that `fastfw compare` knows, in the order in which help texts list them."""


def _plain(name: str) -> str:
    """Return the name as it is compared: lower case, without ``-``, ``_`` and spaces."""
    return name.casefold().translate({ord(c): None for c in "-_ "})


def closest(name: str, candidates: Sequence[str]) -> str:
    """Say which of `candidates` was probably meant, as the end of an error message.

    Parameters
    ----------
    name : str
        What was given.
    candidates : sequence of str
        What is known.

    Returns
    -------
    str
        Such as ``"did you mean 'orgfw'? known: orgfw, osfw"``, without the question when nothing
        comes close.

    Examples
    --------
    >>> closest("ogrfw", ["orgfw", "osfw"])
    "did you mean 'orgfw'? known: orgfw, osfw"
    >>> closest("adam", ["orgfw", "osfw"])
    'known: orgfw, osfw'
    """
    known = f"known: {', '.join(candidates)}"
    plain = {_plain(candidate): candidate for candidate in reversed(candidates)}
    given = _plain(name)
    close = difflib.get_close_matches(given, list(plain), n=1)
    close = close or [word for word in plain if given and word.startswith(given)]
    return f"did you mean {plain[close[0]]!r}? {known}" if close else known


def find_methods(names: Iterable[str]) -> tuple[Method, ...]:
    """Look methods up by name, ignoring case, ``-`` and ``_``.

    Parameters
    ----------
    names : iterable of str
        Names or aliases of methods.

    Returns
    -------
    tuple of Method
        In the order of `names`.

    Raises
    ------
    ValueError
        If there is no name, if a name is unknown (the message suggests one) or given twice.

    Examples
    --------
    >>> [method.label for method in find_methods(["OR-GFW", "osfw"])]
    ['ORGFW', 'OSFW']
    """
    table = {
        _plain(alias): method for method in METHODS for alias in (method.name, *method.aliases)
    }
    found: list[Method] = []
    for name in names:
        method = table.get(_plain(name))
        known = [method.name for method in METHODS]
        if not name.strip():
            raise ValueError(f"methods: an empty name was given; {closest('', known)}")
        if method is None:
            raise ValueError(f"methods: unknown method {name!r}; {closest(name, known)}")
        if method in found:
            raise ValueError(f"methods: {method.name!r} is given twice; name each method once")
        found.append(method)
    if not found:
        known_names = ", ".join(method.name for method in METHODS)
        raise ValueError(f"methods: none given; name at least one of {known_names}")
    return tuple(found)


def default_methods(setting: str) -> tuple[str, ...]:
    """Return the names of the methods that run in `setting` when none are asked for."""
    return tuple(method.name for method in METHODS if setting in method.default_in)


def rounds_at_equal_work(name: str, rounds: int) -> int:
    """Return the rounds of a method that ask for as many gradients as `rounds` of ORGFW.

    A round of ORGFW asks for two gradients of every sample, one of OSFW and of RegularizedOFW
    for one, and round t of OFW and OAW for t.

    Examples
    --------
    >>> [rounds_at_equal_work(name, 400) for name in ("orgfw", "osfw", "ofw")]
    [400, 800, 40]
    """
    if name in ("ofw", "oaw"):
        return math.ceil(2.0 * math.sqrt(rounds))
    return rounds if name == "orgfw" else 2 * rounds
