"""The methods that experiments run, with their constants and sizes.

They are those of the table in `fastfw.learners`. Nothing heavy is imported here, so that the
command line can list the methods at once.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fastfw.learners import TABLE
from fastfw.learners._method import OWN, SETTINGS, Constants, Method

__all__ = ["METHODS", "PRESETS", "SETTINGS", "Method"]

FIGURES = ("figure1", "figure2", "figure3")
"""The paper's, which `reproduce` makes."""

CRITERIA = ("regret", "last")
"""Loss of the decisions played, which ranks as regret does; or of the last decision."""


METHODS = tuple(method for method in TABLE if not method.offline)
"""Those for batches as they come: what `compare` and `grid_search` run."""


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
    """Look methods up by name, label or alias, whatever their case, ``-`` and ``_``; each once.

    >>> [method.label for method in find_methods(["OR-GFW", "osfw"])]
    ['ORGFW', 'OSFW']
    """
    table = {
        _plain(alias): method
        for method in among
        for alias in (method.name, method.label, *method.aliases)
    }
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
    method: Method, rounds: int, batch_size: int = 1, n: int = 1, constants: Constants = OWN
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

NETWORK_METHODS = find_methods(NETWORK_PRESETS["mnist"], TABLE)
"""Those that train networks, which have constants for it, in the order of tables and pictures."""


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
    texts = [] if method.step else ["steps of its own"]
    for name in ("step", "momentum"):
        if not getattr(method, name):
            continue
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
