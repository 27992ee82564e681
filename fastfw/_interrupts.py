"""Work that an interrupt must not cut in two."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Whole"]

_main = threading.main_thread()

# `signal.signal` and `signal.getsignal` make enumerations of what they take and return, which
# takes longer than all else here; they wrap functions that do not.
_core = sys.modules.get("_signal", signal)
_set, _get = _core.signal, _core.getsignal


class Whole:
    """Let Ctrl-C wait until a block of code is done.

    Within the block the signal is noted, and passed on to its handler when the block is left.
    Python only interrupts the main thread: in others nothing is to be done.
    """

    __slots__ = ("_handler", "_noted")

    def __enter__(self) -> None:
        self._handler: Any = None
        self._noted: tuple[int, FrameType | None] | None = None
        if threading.current_thread() is not _main:
            return
        handler = _get(signal.SIGINT)
        if callable(handler):
            self._handler = handler
            _set(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = number, frame

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._handler is None:
            return
        _set(signal.SIGINT, self._handler)
        if self._noted is not None:
            self._handler(*self._noted)
