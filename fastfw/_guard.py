"""Learners that several threads use: whose turn it is to play rounds, and when to look."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock, RLock, get_ident
from typing import Any, TypeVar
from weakref import ref

__all__ = ["Guard"]

T = TypeVar("T")


class Guard:
    """The locks of a learner; copies, loaded learners and forked processes have their own.

    Attributes
    ----------
    turn : lock
        Held by whoever plays for longer: for all of a `run`, for rounds made of oracle calls.
    state : lock
        Held while compiled code changes the state in place, and by whoever looks at it. Rounds of a
        run are played some at a time, and others look in between. What the learner calls back may
        look at it at any time.
    inside : bool
        Whether whoever holds `state` plays a round.
    """

    __slots__ = ("__weakref__", "_player", "inside", "state", "turn")

    def __init__(self) -> None:
        self._renew()
        _guards.add(ref(self, _guards.discard))

    def _renew(self) -> None:
        self.turn, self.state, self._player, self.inside = Lock(), RLock(), 0, False

    def __reduce__(self) -> tuple[Any, ...]:
        return Guard, ()

    def alone(self, play: Callable[..., T], *given: Any) -> T:
        """Return ``play(*given)``, which plays rounds, once nobody else does.

        Raises
        ------
        RuntimeError
            If this thread is in the middle of it.
        """
        me = get_ident()
        with self.state:
            if self.inside or self._player == me:
                raise RuntimeError(
                    "the learner is playing a round: what it calls then (schedules, losses, "
                    "oracles, progress) may look at it, but not play on; use a copy.copy of it"
                )
        with self.turn:
            try:
                with self.state:  # a round that began before has ended
                    self._player = me
                return play(*given)
            finally:
                self._player = 0


#: Not a `WeakSet`, which forgets in Python, where it swallows what handlers of signals raise.
_guards: set[ref[Guard]] = set()


def _renew_all() -> None:
    """In a forked process nobody is left who would give locks back."""
    for guard in [known() for known in list(_guards)]:
        if guard is not None:
            guard._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
