"""The methods that experiments can run: one table, which every new method joins with one entry.

Nothing heavy is imported here, so that the command line can list the methods at once.
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["METHODS", "SETTINGS", "Method", "closest", "default_methods", "find_methods"]

SETTINGS = ("stochastic", "adversarial")
"""How batches arrive: drawn at random, or sorted by label."""


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
        The settings in which the paper (or the method's own) bounds its regret.
    default_in : tuple of str
        The settings in which it runs unless other methods are asked for.
    aliases : tuple of str
        Other names that are understood.
    momentum : bool
        Whether the learner takes a `momentum` schedule.
    rounds : bool
        Whether the learner takes the number of rounds.
    """

    name: str
    label: str
    learner: str
    guarantees: tuple[str, ...]
    default_in: tuple[str, ...] = ()
    aliases: tuple[str, ...] = field(default=(), repr=False)
    momentum: bool = False
    rounds: bool = False

    def build(
        self,
        problem: Any,
        ball: Any,
        *,
        rounds: int,
        seed: int,
        step: Callable[[int], float] | None = None,
        momentum: Callable[[int], float] | None = None,
    ) -> Any:
        """Make the learner; None for a schedule means the learner's own, the paper's theory.

        Parameters
        ----------
        problem, ball : problem, feasible set
            What the learner is for.
        rounds : int
            How many rounds it will be run for; passed on where the method wants to know.
        seed : int
            The seed of the learner's own draws.
        step, momentum : callable of t, or None
            Schedules; `momentum` is passed on where the method has one.

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
        return getattr(fastfw, self.learner)(problem, ball, **options)


METHODS = (
    Method(
        name="orgfw",
        label="ORGFW",
        learner="ORGFW",
        guarantees=("stochastic",),
        default_in=("stochastic", "adversarial"),
        momentum=True,
    ),
    Method(
        name="osfw",
        label="OSFW",
        learner="OSFW",
        guarantees=("stochastic",),
        default_in=("stochastic", "adversarial"),
        momentum=True,
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
