"""The methods that experiments run, with their constants and sizes: one row for each.

A new method joins every command with a row of `TABLE`. Nothing heavy is imported here, so that
the command line can list the methods at once.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["METHODS", "PRESETS", "SETTINGS", "Method"]

SETTINGS = ("stochastic", "adversarial")
"""How batches arrive: drawn at random, or sorted by label."""

FIGURES = ("figure1", "figure2", "figure3")
"""The paper's, which `reproduce` makes."""

CRITERIA = ("regret", "last")
"""Loss of the decisions played, which ranks as regret does; or of the last decision."""

SUB_BATCH = 4
"""Rows in a sub-batch of a meta method, as in the paper's experiments."""

Pair = tuple[float, float]
"""(c, e), which stands for the schedule ``min(c / (t + 1)**e, 1)``."""


# --- methods ----------------------------------------------------------------------------------


class Constants(NamedTuple):
    """The constants of one method; None leaves the method its own."""

    step: Pair | float | Callable[[int], float] | None = None
    momentum: Pair | Callable[[int], float] | None = None
    scale: float | None = None  # a method's own c, and that of FTPL in meta methods
    epoch_length: int | None = None  # of offline methods
    batch_size: int | None = None


_OWN = Constants()
"""All as theory has it."""


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
    step, momentum, rounds, scale, meta : bool
        Whether the learner takes a `step` schedule; a `momentum` schedule; the number of rounds; a
        constant c of its own or of `FTPL`; inner steps and sub-batches.
    gradients : str
        How many gradients of every sample a round asks for: "1", "2", "t" (as many as rounds so
        far), or "epochs" for offline methods.
    options : tuple of pairs
        Further arguments of the learner, by name.
    """

    name: str
    label: str
    learner: str
    guarantees: tuple[str, ...] = ()
    default_in: tuple[str, ...] = ()
    aliases: tuple[str, ...] = field(default=(), repr=False)
    step: bool = True
    momentum: bool = False
    rounds: bool = False
    scale: bool = False
    meta: bool = False
    gradients: str = "1"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def offline(self) -> bool:
        """Whether it fits all the data in epochs, rather than play on batches as they come."""
        return self.gradients == "epochs"

    def build(
        self,
        problem: Any,
        set: Any,
        constants: Constants = _OWN,
        *,
        rounds: int,
        seed: int | tuple[int, ...],
        inner_steps: int | None = None,
        sub_batch_size: int | None = SUB_BATCH,
        init: str | None = None,
    ) -> Any:
        """Make the learner; what it does not take is ignored, None means the learner's own.

        Parameters
        ----------
        problem, set : problem, feasible set
            What the learner is for.
        constants : Constants, optional
            Its constants.
        rounds : int
            How many rounds it will be run for; passed on where the method wants to know.
        seed : int or tuple of int
            The seed of the learner's own draws.
        inner_steps : int, optional
            Inner steps of a meta method; its theory's number by default.
        sub_batch_size : int or None
            Rows in its sub-batches; None for whole batches.
        init : str, optional
            Where to start, see `fastfw.OneHiddenLayer`.

        Returns
        -------
        learner
            A fresh learner that has seen no round.
        """
        import fastfw

        options: dict[str, Any] = {"step": _schedule(constants.step)} if self.step else {}
        if self.momentum:
            options["momentum"] = _schedule(constants.momentum)
        if self.offline:
            options |= {
                "epoch_length": constants.epoch_length, "batch_size": constants.batch_size
            }  # fmt: skip
        options = {name: value for name, value in options.items() if value is not None}
        options |= self.options
        if self.rounds:
            options["rounds"] = rounds
        if self.meta:
            options |= {"inner_steps": inner_steps, "sub_batch_size": sub_batch_size}
        if constants.scale is not None and self.scale:
            options |= (
                {"base": fastfw.FTPL(scale=constants.scale)}
                if self.meta
                else {"scale": constants.scale}
            )
        if init is not None:
            options["init"] = init
        return getattr(fastfw, self.learner)(problem, set, seed=seed, **options)

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


def _schedule(given: Any) -> Any:
    """Return the schedule that a pair stands for; a number or a function is one already."""
    if not isinstance(given, tuple):
        return given
    from fastfw.schedules import power_schedule

    return power_schedule(*given)


TABLE = (
    Method(
        "orgfw", "ORGFW", "ORGFW", ("stochastic",), ("stochastic",), momentum=True, gradients="2"
    ),
    Method(
        "morgfw", "MORGFW", "MORGFW", ("adversarial",), ("adversarial",),
        momentum=True, rounds=True, scale=True, meta=True,
    ),
    Method("osfw", "OSFW", "OSFW", ("stochastic",), ("stochastic",), momentum=True),
    Method("ofw", "OFW", "OFW", SETTINGS, ("adversarial",), gradients="t"),
    Method(
        "regularized-ofw", "RegularizedOFW", "RegularizedOFW", ("adversarial",), ("adversarial",),
        ("rofw", "regularised-ofw"), rounds=True, scale=True,
    ),
    Method("oaw", "OAW", "OAW", ("stochastic",), gradients="t"),
    Method(
        "metafw", "MetaFrankWolfe", "MetaFrankWolfe", ("adversarial",),
        aliases=("meta-frank-wolfe",), momentum=True, rounds=True, scale=True, meta=True,
    ),
    Method(
        "ofw-ls", "OFW-LS", "RegularizedOFW", ("adversarial",), aliases=("line-search",),
        step=False, rounds=True, scale=True, options=(("step", "line-search"),),
    ),
    # Losses of comparisons are not strongly convex: the number stands for a regulariser.
    Method(
        "sc-ofw", "SC-OFW", "StronglyConvexOFW", aliases=("strongly-convex-ofw",),
        step=False, options=(("strong_convexity", 0.1),),
    ),
    Method("ospf", "OSPF", "OSPF", ("adversarial",), step=False, rounds=True, scale=True),
    Method("svrf", "SVRF", "SVRF", gradients="epochs"),
    Method("spiderfw", "SPIDER-FW", "SpiderFW", gradients="epochs"),
)  # fmt: skip
"""Every method, in the order in which help texts list them."""

METHODS = tuple(method for method in TABLE if not method.offline)
"""Those for batches as they come: what `compare` and `grid_search` run."""

_ROWS = {method.name: method for method in TABLE}
NETWORK_METHODS = tuple(
    _ROWS[name] for name in ("orgfw", "osfw", "regularized-ofw", "ofw", "oaw", "svrf", "spiderfw")
)
"""Those that train networks, in the order of tables and pictures."""


def _plain(name: str) -> str:
    """Return the name as it is compared: lower case, without ``-``, ``_`` and spaces."""
    return name.casefold().translate({ord(c): None for c in "-_ "})


def closest(name: str, candidates: Sequence[str]) -> str:
    """Say which of `candidates` was probably meant, as the end of an error message.

    >>> closest("ogrfw", ["orgfw", "osfw"])
    "did you mean 'orgfw'? known: orgfw, osfw"
    >>> closest("adam", ["orgfw", "osfw"])
    'known: orgfw, osfw'
    """
    listed = f"known: {', '.join(candidates)}"
    plain = {_plain(candidate): candidate for candidate in reversed(candidates)}
    given = _plain(name)
    close = difflib.get_close_matches(given, list(plain), n=1)
    close = close or [word for word in plain if given and word.startswith(given)]
    return f"did you mean {plain[close[0]]!r}? {listed}" if close else listed


def known(value: Any, candidates: Sequence[str], argument: str) -> str:
    """Return a word that is one of `candidates`, or raise ValueError with the closest one."""
    if value in candidates:
        return str(value)
    raise ValueError(f"{argument}: unknown {value!r}; {closest(str(value), candidates)}")


def find_methods(names: Iterable[str], among: Sequence[Method] = METHODS) -> tuple[Method, ...]:
    """Look methods up by name or alias, ignoring case, ``-`` and ``_``; each may be named once.

    >>> [method.label for method in find_methods(["OR-GFW", "osfw"])]
    ['ORGFW', 'OSFW']
    """
    table = {_plain(alias): method for method in among for alias in (method.name, *method.aliases)}
    listed = [method.name for method in among]
    found: list[Method] = []
    for name in names:
        method = table.get(_plain(name))
        if not name.strip():
            raise ValueError(f"methods: an empty name was given; {closest('', listed)}")
        if method is None:
            raise ValueError(f"methods: unknown method {name!r}; {closest(name, listed)}")
        if method in found:
            raise ValueError(f"methods: {method.name!r} is given twice; name each method once")
        found.append(method)
    if not found:
        raise ValueError(f"methods: none given; name at least one of {', '.join(listed)}")
    return tuple(found)


def default_methods(setting: str) -> tuple[str, ...]:
    """Return the names of the methods that run in `setting` when none are asked for."""
    return tuple(method.name for method in METHODS if setting in method.default_in)


def rounds_at_equal_work(
    method: Method, rounds: int, batch_size: int = 1, n: int = 1, constants: Constants = _OWN
) -> int:
    """Return the rounds of a method that ask for as many gradients as `rounds` of ORGFW.

    A round of ORGFW asks for two gradients of every sample, one of OSFW and of RegularizedOFW
    for one, and round t of OFW and OAW for t. Offline methods, which begin each epoch with the
    gradients of all `n` samples, get the most iterations that cost no more, at least one.

    >>> [rounds_at_equal_work(method, 400) for method in find_methods(["orgfw", "osfw", "ofw"])]
    [400, 800, 40]
    """
    if method.gradients == "t":
        return math.ceil(2.0 * math.sqrt(rounds))
    if not method.offline:
        return 2 * rounds // int(method.gradients)
    q, b = constants.epoch_length, constants.batch_size
    assert q is not None
    assert b is not None
    whole, rest = divmod(2 * batch_size * rounds, n + (q - 1) * 2 * b)
    return max(1, whole * q + (1 + (rest - n) // (2 * b) if rest >= n else 0))


# --- constants and sizes of the paper's experiments --------------------------------------------

PRESETS: dict[str, dict[str, Constants]] = {
    "theory": {},
    "mnist-stochastic": {
        "orgfw": Constants((1.0, 1.0), (1.0, 2 / 3)),
        "osfw": Constants((1.0, 1.0), (1.0, 2 / 3)),
        "ofw": Constants((0.5, 2 / 3)),
        "oaw": Constants((0.5, 2 / 3)),
        "regularized-ofw": Constants((1.0, 1.0), scale=1e4),
    },
    "cifar10-stochastic": {
        "orgfw": Constants((0.1, 2 / 3), (1.0, 2 / 3)),
        "osfw": Constants((0.1, 2 / 3), (1.0, 1 / 2)),
        "ofw": Constants((0.05, 1 / 2)),
        "oaw": Constants((0.05, 1 / 2)),
        "regularized-ofw": Constants((0.06, 2 / 3), scale=1e3),
    },
    "mnist-adversarial": {
        "ofw": Constants((1.0, 1 / 2)),
        "oaw": Constants((1.0, 1 / 2)),
        "regularized-ofw": Constants((2.0, 1 / 2), scale=1e4),
        "morgfw": Constants((1.0, 1.0), (2.0, 1 / 2), scale=100.0),
        "metafw": Constants((1.0, 1.0), (4.0, 1 / 2), scale=20.0),
    },
    "cifar10-adversarial": {
        "ofw": Constants((0.05, 1.0)),
        "oaw": Constants((0.05, 1.0)),
        "regularized-ofw": Constants((0.05, 1.0), scale=1e2),
        "morgfw": Constants((0.1, 1.0), (0.5, 1 / 2), scale=100.0),
        "metafw": Constants((0.1, 1.0), (1.0, 1 / 2), scale=100.0),
    },
}
"""Constants of the paper's experiments by the preset's name, then by the method's.

They were found there by grid search and are meant for losses that are means over batches: with
sums, RegularizedOFW's and FTPL's would differ. ``theory`` changes nothing; a method that a preset
does not list keeps its own constants, the library's defaults.
"""

NETWORK_PRESETS: dict[str, dict[str, Constants]] = {
    "mnist": {
        "orgfw": Constants((2.0, 1.0), (0.25, 1 / 2)),
        "osfw": Constants((1.0, 1.0), (0.1, 1 / 2)),
        "regularized-ofw": Constants((0.1, 2 / 3), scale=1e3),
        "ofw": Constants((1.0, 1.0)),
        "oaw": Constants((1.0, 1.0)),
        "svrf": Constants(2.5e-3, epoch_length=240, batch_size=50),
        "spiderfw": Constants(2e-3, epoch_length=240, batch_size=50),
    },
    "cifar10": {
        "orgfw": Constants((0.1, 2 / 3), (2.0, 2 / 3)),
        "osfw": Constants((0.1, 2 / 3), (1.0, 2 / 3)),
        "regularized-ofw": Constants((0.1, 1 / 2), scale=1e3),
        "ofw": Constants((1.0, 1.0)),
        "oaw": Constants((1.0, 1.0)),
        "svrf": Constants(1e-3, epoch_length=200, batch_size=50),
        "spiderfw": Constants(5e-4, epoch_length=200, batch_size=16),
    },
}
"""The same for networks."""


class Sizes(NamedTuple):
    """Rounds, batch size and radius where none are given; the rounds N of runs at equal work."""

    rounds: int
    batch_size: int
    radius: float
    descent: int | None = None


# The paper's values where it has any (MNIST and CIFAR-10); elsewhere what lets the regret curves
# bend within the run.
_SIZES = {
    ("fashion-mnist-4k", "stochastic"): Sizes(400, 100, 8.0),
    ("fashion-mnist-4k", "adversarial"): Sizes(100, 40, 8.0),
    ("mnist", "stochastic"): Sizes(400, 600, 8.0, 1600),
    ("mnist", "adversarial"): Sizes(100, 600, 8.0),
    ("fashion-mnist", "stochastic"): Sizes(400, 600, 8.0, 1600),
    ("fashion-mnist", "adversarial"): Sizes(100, 600, 8.0),
    ("cifar10", "stochastic"): Sizes(100, 500, 32.0, 4000),
    ("cifar10", "adversarial"): Sizes(100, 500, 32.0),
    ("mnist", "network"): Sizes(150_000, 16, 10.0),
    ("fashion-mnist", "network"): Sizes(150_000, 16, 10.0),
    ("cifar10", "network"): Sizes(45_000, 16, 10.0),
}
# Fashion-MNIST is not in the paper; its images have the size and the range of MNIST's.
_FAMILY = {
    "mnist": "mnist",
    "fashion-mnist": "mnist",
    "fashion-mnist-4k": "mnist",
    "cifar10": "cifar10",
}


def default_sizes(data: str, setting: str, n_samples: int) -> Sizes:
    """Return the sizes for a data set; unknown data gets values that fit its size."""
    listed = _SIZES.get((data.casefold(), setting))
    if listed is not None:
        return listed
    if setting == "network":
        return Sizes(4000, 16, 10.0)
    if setting == "adversarial":
        rounds = min(100, n_samples)
        return Sizes(rounds, n_samples // rounds, 8.0)
    return Sizes(400, min(100, n_samples), 8.0)


def default_preset(data: str, setting: str) -> str:
    """Return the preset for a data set in a setting: the paper's if it has one, else theory.

    >>> default_preset("fashion-mnist-4k", "stochastic"), default_preset("digits", "stochastic")
    ('mnist-stochastic', 'theory')
    """
    name = f"{_FAMILY.get(data)}-{setting}"
    return name if name in PRESETS else "theory"


def network_family(data: str) -> str:
    """Return the key of `NETWORK_PRESETS` for a data set."""
    return _FAMILY.get(data, "mnist")


def constants_in_words(method: Method, constants: Constants, sub_batch_size: int | None) -> str:
    """Return a method's constants for a table."""
    if method.offline:
        return (
            f"step {constants.step:g}, epochs of {constants.epoch_length}, batches of "
            f"{constants.batch_size}"
        )
    texts = []
    for name in ("step", "momentum") if method.momentum else ("step",):
        pair = getattr(constants, name)
        texts.append(
            f"{name} theory" if pair is None else f"{name} {pair[0]:g}/(t+1)^{pair[1]:.3g}"
        )
    if method.meta:
        texts.append(
            "FTPL c = 1" if constants.scale is None else f"c = {constants.scale:g} of FTPL"
        )
        texts.append(f"sub-batches of {sub_batch_size}")
    elif method.scale:
        c = constants.scale
        texts.append("eta theory" if c is None else f"c = {c:g} of eta")
    return ", ".join(texts)
