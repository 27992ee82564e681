"""Batches cut into parts that threads share, from the first round to the last in compiled code.

One thread leads: it plays the rounds. Others help: they wait for a round to be opened and take
parts of its batch until none is left, and the leader takes parts too, so that a round ends even if
nobody helps. Each part has its own sum of gradients; these are added in the order of the rows, so
that the number of parts decides the bits, and nothing else does.

What they share is a tuple, `team`, of three arrays: the sums of gradients of all parts but the
first (threads - 1, C, d); numbers, which are the scale of the iterate, the coefficients of the
gradients and the other entries below, how far the last step moved the vertex' entries, and the
parts' sums of losses (threads,); and words that they tell each other by, see `_atomics`: the open
round, and for each round the parts that are taken and the parts that are done.
"""

from __future__ import annotations

import numpy as np

from . import _state as at
from ._atomics import NOT_YET, OVER, claim, edge, next_open, publish, wait_for
from ._jit import kernel
from ._tiles import GROUP
from .gradients import LONGEST_BLOCK, recursive_gradient, room_for

__all__ = [
    "GROUP",
    "LISTS",
    "help_rounds",
    "moves",
    "room_of_parts",
    "shared_gradient",
]

#: Entries of the numbers: the iterate's scale, what undoes the last step's shrinking, where x'
#: comes from, which of two arrays takes the first part's sum, the coefficients of the gradients at
#: x and at x'; then the lists.
SCALE, SHRINK, MODE, SCRATCH, ALPHA, BETA, LISTS = 0, 1, 2, 3, 4, 5, 6


@kernel()
def moves(team, index):
    """What the last step added to the entries at `index`: space in the numbers of a team."""
    return team[1][LISTS : LISTS + index.size].reshape(index.shape)


@kernel()
def _take_parts(A, model, y, rows, starts, t, u, other, estimates, tails, index, team, room):
    """Gradients of parts of round t's batch, as `recursive_gradient`, until all are taken.

    Returns how many parts there are; of a model with a tail, not more than one.
    """
    others, numbers, words = team
    rounds = starts.shape[0] - 1
    moved = moves(team, index)
    losses = numbers[LISTS + index.size :]
    low, stop = starts[t], starts[t + 1]
    n = stop - low
    scratch = int(numbers[SCRATCH])
    parts = min(losses.shape[0], (n + GROUP - 1) // GROUP)
    k = claim(words, 1 + t)
    while k < parts:
        first, last = edge(n, parts, k, GROUP), edge(n, parts, k + 1, GROUP)
        G = others[k - 1] if k > 0 else estimates[scratch]
        losses[k] = recursive_gradient(
            A, model, y, rows[low + first : low + last], u, numbers[SCALE], tails[at.NOW],
            int(numbers[MODE]), other, tails[at.OTHER], index, moved, numbers[SHRINK],
            numbers[ALPHA], numbers[BETA], G, tails[at.ESTIMATES + scratch],
            rows[stop + first : stop + first + LONGEST_BLOCK], room,
        )  # fmt: skip
        claim(words, 1 + rounds + t)
        k = claim(words, 1 + t)
    return parts


@kernel()
def room_of_parts(A, model, starts, u, tails, index, team):
    """Room for a part of the first batch, and of others of its size."""
    threads = team[1].shape[0] - LISTS - index.size
    n = starts[1] - starts[0] if starts.shape[0] > 1 else 1
    parts = min(threads, (n + GROUP - 1) // GROUP)
    return room_for(A, model, u, tails[at.NOW], edge(n, parts, np.intp(1), GROUP))


@kernel()
def help_rounds(A, model, y, rows, starts, u, other, estimates, tails, index, team):
    """Take parts of every round that `shared_gradient` opens, until it is over."""
    now = next_open(team[2], NOT_YET)
    room = room_of_parts(A, model, starts, u, tails, index, team)
    while now != OVER:
        _take_parts(
            A, model, y, rows, starts, now - 1, u, other, estimates, tails, index, team, room
        )
        now = next_open(team[2], now)


@kernel()
def shared_gradient(
    A, model, y, rows, starts, t, mode, shrink, alpha, beta, state, moved, team, space
):
    """Loss, and gradient in the estimate that is scratch, of round t's batch by all threads.

    As `gradients.recursive_gradient`, with `moves` for the step.
    """
    others, numbers, words = team
    rounds = starts.shape[0] - 1
    scratch = 1 - int(state.scalars[at.PARITY])
    numbers[SCALE], numbers[SHRINK] = state.scalars[at.SCALE], shrink
    numbers[MODE], numbers[SCRATCH] = mode, scratch
    numbers[ALPHA], numbers[BETA] = alpha, beta
    publish(words, 0, t + 1)
    parts = _take_parts(
        A, model, y, rows, starts, t, state.u, state.other, state.estimates, state.tails,
        state.index, team, space[1],
    )  # fmt: skip
    wait_for(words, 1 + rounds + t, parts)
    losses = numbers[LISTS + state.index.size :]
    loss = losses[0]
    g = state.estimates[scratch]
    for k in range(1, parts):
        loss += losses[k]
        part = others[k - 1]
        for c in range(g.shape[0]):
            for j in range(g.shape[1]):
                g[c, j] += part[c, j]
    return loss
