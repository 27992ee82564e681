"""Constants of the paper's experiments, by name; found there by grid search.

Each is a pair (c, e) that stands for the schedule ``min(c / (t + 1)**e, 1)``. A method that a
preset does not list keeps its own schedules, the paper's theory. Nothing heavy is imported here.
"""

from typing import NamedTuple

__all__ = ["PRESETS", "Constants", "default_preset"]

Pair = tuple[float, float]


class Constants(NamedTuple):
    """The schedules of one method; None leaves the method its own."""

    step: Pair | None = None
    momentum: Pair | None = None


PRESETS: dict[str, dict[str, Constants]] = {
    "theory": {},
    "mnist-stochastic": {
        "orgfw": Constants(step=(1.0, 1.0), momentum=(1.0, 2 / 3)),
        "osfw": Constants(step=(1.0, 1.0), momentum=(1.0, 2 / 3)),
    },
    "cifar10-stochastic": {
        "orgfw": Constants(step=(0.1, 2 / 3), momentum=(1.0, 2 / 3)),
        "osfw": Constants(step=(0.1, 2 / 3), momentum=(1.0, 1 / 2)),
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
