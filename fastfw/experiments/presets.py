"""Constants of the paper's experiments, by name; found there by grid search.

Schedules are pairs (c, e) that stand for ``min(c / (t + 1)**e, 1)``. A method that a preset does
not list keeps its own constants, the library's defaults. The constants are meant for losses that
are means over batches: with sums, RegularizedOFW's and FTPL's would differ. Nothing heavy is
imported here.
"""

from typing import NamedTuple

__all__ = ["PRESETS", "Constants", "default_preset"]

Pair = tuple[float, float]


class Constants(NamedTuple):
    """The constants of one method; None leaves the method its own."""

    step: Pair | None = None
    momentum: Pair | None = None
    eta: float | None = None  # RegularizedOFW's c in eta = c / T^(3/4)
    scale: float | None = None  # FTPL's c


PRESETS: dict[str, dict[str, Constants]] = {
    "theory": {},
    "mnist-stochastic": {
        "orgfw": Constants(step=(1.0, 1.0), momentum=(1.0, 2 / 3)),
        "osfw": Constants(step=(1.0, 1.0), momentum=(1.0, 2 / 3)),
        "ofw": Constants(step=(0.5, 2 / 3)),
        "oaw": Constants(step=(0.5, 2 / 3)),
        "regularized-ofw": Constants(step=(1.0, 1.0), eta=1e4),
    },
    "cifar10-stochastic": {
        "orgfw": Constants(step=(0.1, 2 / 3), momentum=(1.0, 2 / 3)),
        "osfw": Constants(step=(0.1, 2 / 3), momentum=(1.0, 1 / 2)),
        "ofw": Constants(step=(0.05, 1 / 2)),
        "oaw": Constants(step=(0.05, 1 / 2)),
        "regularized-ofw": Constants(step=(0.06, 2 / 3), eta=1e3),
    },
    "mnist-adversarial": {
        "ofw": Constants(step=(1.0, 1 / 2)),
        "oaw": Constants(step=(1.0, 1 / 2)),
        "regularized-ofw": Constants(step=(2.0, 1 / 2), eta=1e4),
        "morgfw": Constants(step=(1.0, 1.0), momentum=(2.0, 1 / 2), scale=100.0),
        "metafw": Constants(step=(1.0, 1.0), momentum=(4.0, 1 / 2), scale=20.0),
    },
    "cifar10-adversarial": {
        "ofw": Constants(step=(0.05, 1.0)),
        "oaw": Constants(step=(0.05, 1.0)),
        "regularized-ofw": Constants(step=(0.05, 1.0), eta=1e2),
        "morgfw": Constants(step=(0.1, 1.0), momentum=(0.5, 1 / 2), scale=100.0),
        "metafw": Constants(step=(0.1, 1.0), momentum=(1.0, 1 / 2), scale=100.0),
    },
}
"""Constants by the preset's name, then by the method's; ``theory`` changes nothing."""

# Fashion-MNIST is not in the paper; its images have the size and the range of MNIST's.
_FAMILY = {
    "mnist": "mnist",
    "fashion-mnist": "mnist",
    "fashion-mnist-4k": "mnist",
    "cifar10": "cifar10",
}


def default_preset(data: str, setting: str) -> str:
    """Return the preset for a data set in a setting: the paper's if it has one, else theory.

    Parameters
    ----------
    data : str
        The name of a data set, or anything else.
    setting : {"stochastic", "adversarial"}
        How the batches arrive.

    Returns
    -------
    str
        A key of `PRESETS`.

    Examples
    --------
    >>> default_preset("fashion-mnist-4k", "stochastic")
    'mnist-stochastic'
    >>> default_preset("digits", "stochastic")
    'theory'
    """
    name = f"{_FAMILY.get(data)}-{setting}"
    return name if name in PRESETS else "theory"
