"""Words of memory that threads tell each other by.

`peek` and `publish` order memory: what a thread wrote before it published a word is seen by those
who peeked at it. `claim` counts up and no two callers get the same number. `rest` is what a thread
does while it waits for another, `next_open` how a helper waits for the leader to open something,
and `wait_for` how the leader waits for the helpers. Plain Python bodies are used when the JIT is
disabled, where the interpreter's lock makes every one of them whole.

Python code can be interrupted between any two steps, compiled code cannot. So compiled code opens
and compiled code closes, once all parts are done: whatever becomes of the Python around the leader,
helpers touch nothing that is not theirs afterwards, and none waits for a word that never comes.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from llvmlite import binding, ir
from numba import types

from ._instruction import instruction
from ._jit import kernel

__all__ = ["NOT_YET", "OVER", "claim", "edge", "next_open", "peek", "publish", "rest", "wait_for"]

#: What word 0 holds in place of the number of what is open, from 1 on: none yet, none any more.
NOT_YET, OVER = 0, -1

#: Turns of waiting in which a thread keeps its core, some tens of microseconds in all.
_PATIENCE = 1000
#: Turns after which a helper no longer waits for the leader's first word, some milliseconds in all.
_LONGEST_WAIT = 20_000

_lock = threading.Lock()


@kernel()
def edge(n, parts, k, unit):
    """Where part k of n things begins: parts are whole units but for the last."""
    return min(n, (n + unit - 1) // unit * k // parts * unit)


def _word(context: Any, builder: Any, kind: Any, words: Any, i: Any) -> Any:
    data = context.make_array(kind)(context, builder, words).data
    return builder.gep(data, [i])


def _write_peek(context, words, i):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        pointer = _word(context, builder, signature.args[0], *args)
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(words, types.intp), build


@instruction(_write_peek)
def peek(words: Any, i: Any) -> int:
    """Return word i."""
    return int(words[i])


def _write_publish(context, words, i, value):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        pointer = _word(context, builder, signature.args[0], *args[:2])
        builder.store_atomic(args[2], pointer, "release", 8)
        return context.get_dummy_value()

    return types.none(words, types.intp, types.int64), build


@instruction(_write_publish)
def publish(words: Any, i: Any, value: Any) -> None:
    """Set word i."""
    words[i] = value


def _write_claim(context, words, i):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        pointer = _word(context, builder, signature.args[0], *args)
        return builder.atomic_rmw("add", pointer, ir.IntType(64)(1), "acq_rel")

    return types.int64(words, types.intp), build


@instruction(_write_claim)
def claim(words: Any, i: Any) -> int:
    """Add one to word i; return what it was before."""
    with _lock:
        before = int(words[i])
        words[i] = before + 1
    return before


def _call(builder: Any, name: str, result: Any) -> None:
    kind = ir.FunctionType(result, [])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(function, [])


def _write_rest(context, turns):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        patient = builder.icmp_signed("<", args[0], args[0].type(_PATIENCE))
        with builder.if_else(patient) as (keep, leave):
            with keep:  # what a core is told in a loop that waits
                if binding.get_process_triple().startswith(("x86_64", "i686")):
                    _call(builder, "llvm.x86.sse2.pause", ir.VoidType())
            with leave:  # let another thread have the core, on systems of the POSIX kind
                if binding.address_of_symbol("sched_yield") is not None:
                    _call(builder, "sched_yield", ir.IntType(32))
        return builder.add(args[0], args[0].type(1))

    return types.int64(types.int64), build


@instruction(_write_rest)
def rest(turns: Any) -> int:
    """Wait a moment, after so many turns of waiting; leave the core to others if it takes long."""
    time.sleep(0)
    return int(turns) + 1


@kernel()
def next_open(words, seen):
    """The number in word 0, `OVER` in the end, once it is another than the one seen before.

    It is also over for whoever saw `NOT_YET` for long: the leader may have been interrupted on its
    way here, or goes on alone.
    """
    turns = 0
    now = peek(words, 0)
    while now == seen:
        if seen == NOT_YET and turns == _LONGEST_WAIT:
            return OVER
        turns = rest(turns)
        now = peek(words, 0)
    return now


@kernel()
def wait_for(words, i, parts):
    """Wait until so many parts are done, which word i counts."""
    turns = 0
    while peek(words, i) < parts:
        turns = rest(turns)
