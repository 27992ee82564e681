"""What a row of the table of methods says, and how it makes a learner."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

__all__ = ["OWN", "SETTINGS", "SUB_BATCH", "Constants", "Method", "Pair", "learner_class"]

SETTINGS = ("stochastic", "adversarial")
"""How batches arrive: drawn at random, or sorted by label."""

SUB_BATCH = 4
"""Rows in a sub-batch of a meta method, as in the paper's experiments."""

Pair = tuple[float, float]
"""(c, e), which stands for the schedule ``min(c / (t + 1)**e, 1)``."""


class Constants(NamedTuple):
    """The constants of one method; None leaves the method its own."""

    step: Pair | float | Callable[[int], float] | None = None
    momentum: Pair | Callable[[int], float] | None = None
    scale: float | None = None  # a method's own c, and that of FTPL in meta methods
    epoch_length: int | None = None  # of offline methods
    batch_size: int | None = None


OWN = Constants()
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
        constants: Constants = OWN,
        *,
        rounds: int,
        seed: int | tuple[int, ...],
        inner_steps: int | None = None,
        sub_batch_size: int | None = SUB_BATCH,
        init: str | None = None,
        **others: Any,
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
        **others
            Other arguments of the learner, such as its dtype.

        Returns
        -------
        learner
            A fresh learner that has seen no round.
        """
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
            if self.meta:
                from fastfw.base_learners import FTPL

                options["base"] = FTPL(scale=constants.scale)
            else:
                options["scale"] = constants.scale
        if init is not None:
            options["init"] = init
        return learner_class(self.learner)(problem, set, seed=seed, **options | others)

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
        if setting == "adversarial" or "adversarial" not in self.guarantees:
            return f"{none} in the {setting} setting"
        # What holds for any batches holds for random ones.
        return f"{none} of its own in the stochastic setting; the one for any batches applies"


def learner_class(name: str) -> Any:
    """Return the class of this name, of the module that is named after it."""
    module = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return getattr(import_module(f"fastfw.learners.{module}"), name)


def _schedule(given: Any) -> Any:
    """Return the schedule that a pair stands for; a number or a function is one already."""
    if not isinstance(given, tuple):
        return given
    from fastfw.schedules import power_schedule

    return power_schedule(*given)
