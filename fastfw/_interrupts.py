"""Work that signals must not cut in two."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

_main = threading.main_thread()

# `signal.signal` and `signal.getsignal` make enumerations of what they take and return, which
# takes longer than all else here; they wrap functions that do not.
_core = sys.modules.get("_signal", signal)
_set, _get = _core.signal, _core.getsignal
_signals = tuple(int(number) for number in signal.valid_signals())


class defer_signals:
    """Let Ctrl-C and other signals with handlers in Python wait until a block of code is done.

    Within the block they are noted, and passed on to their handlers, which may raise, when it is
    left. Python interrupts the main thread alone: in others nothing is to be done.
    """

    __slots__ = ("_handlers", "_noted")

    def __enter__(self) -> None:
        self._handlers: list[tuple[int, Any]] = []
        self._noted: list[tuple[int, FrameType | None]] = []
        if threading.current_thread() is not _main:
            return
        try:
            for number in [number for number in _signals if callable(_get(number))]:
                self._handlers.append((number, _get(number)))
                _set(number, self._note)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted.append((number, frame))

    def _restore(self) -> None:
        """Put the handlers back, all of them even where one is called meanwhile and raises."""
        try:
            while self._handlers:
                _set(*self._handlers[-1])
                self._handlers.pop()
        finally:
            if self._handlers:
                self._restore()

    def _pass_on(self, handlers: dict[int, Any]) -> None:
        try:
            while self._noted:
                number, frame = self._noted.pop(0)
                handlers[number](number, frame)
        finally:
            if self._noted:
                self._pass_on(handlers)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._handlers:
            return
        handlers = dict(self._handlers)
        try:
            self._restore()
        finally:
            if self._noted:
                self._pass_on(handlers)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Start processes that leave Ctrl-C to this one, which ends them: they inherit what is blocked.

    It reaches all processes of a terminal; each would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # whose start would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
