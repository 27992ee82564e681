"""Batches cut into parts that threads share, from the first round to the last in compiled code.

One thread leads: it plays the rounds. Others help: they wait for a round to be opened and take
parts of its batch until none is left, and the leader takes parts too, so that a round ends even if
nobody helps. Each part has its own sum of gradients; these are added in the order of the rows, so
that the number of parts decides the bits, and nothing else does.

What they share is a tuple, `team`, of three arrays: the sums of gradients of all parts but the
first (threads - 1, C, d); numbers, which are the scale of the iterate, the coefficients of the
gradients and the other entries below, how far the last step moved each row (C,), and the parts'
sums of losses (threads,); and words that they tell each other by, see `_shared`: the open round,
and for each round the parts that are taken and the parts that are done.
"""

from __future__ import annotations

from ._jit import kernel
from ._shared import NOT_YET, OVER, claim, edge, next_open, publish, wait_for
from ._tiles import GROUP
from .logistic import LONGEST_BLOCK, recursive_gradient

#: Entries of the numbers: the iterate's scale, what undoes the last step's shrinking, where the
#: previous point comes from, which of two arrays takes the first part's sum, the coefficients of
#: the gradients at the present and at the previous point; then the lists.
SCALE, SHRINK, MODE, SCRATCH, ALPHA, BETA, LISTS = 0, 1, 2, 3, 4, 5, 6


@kernel()
def moves(team):
    """What the last step added to each row: space in the numbers that a team shares."""
    n_classes = team[0].shape[1]
    return team[1][LISTS : LISTS + n_classes]


@kernel()
def _take_parts(A, y, rows, starts, t, u, sums, previous, index, team):
    """Gradients of parts of round t's batch, as `logistic.recursive_gradient`, until all are taken.

    Returns how many parts there are.
    """
    others, numbers, words = team
    rounds = starts.shape[0] - 1
    moved = moves(team)
    losses = numbers[LISTS + others.shape[1] :]
    low, stop = starts[t], starts[t + 1]
    n = stop - low
    parts = min(losses.shape[0], (n + GROUP - 1) // GROUP)
    k = claim(words, 1 + t)
    while k < parts:
        first, last = edge(n, parts, k, GROUP), edge(n, parts, k + 1, GROUP)
        G = others[k - 1] if k > 0 else sums[int(numbers[SCRATCH])]
        losses[k] = recursive_gradient(
            A, y, rows[low + first : low + last], u, numbers[SCALE], int(numbers[MODE]), previous,
            index, moved, numbers[SHRINK], numbers[ALPHA], numbers[BETA], G,
            rows[stop + first : stop + first + LONGEST_BLOCK],
        )  # fmt: skip
        claim(words, 1 + rounds + t)
        k = claim(words, 1 + t)
    return parts


@kernel()
def help_rounds(A, y, rows, starts, u, sums, previous, index, team):
    """Take parts of every round that `shared_gradient` opens, until it is over."""
    now = next_open(team[2], NOT_YET)
    while now != OVER:
        _take_parts(A, y, rows, starts, now - 1, u, sums, previous, index, team)
        now = next_open(team[2], now)


@kernel()
def finish(done, team):
    """Let the helpers go, and return `done`: the last thing that the leader does."""
    publish(team[2], 0, OVER)
    return done


@kernel()
def shared_gradient(
    A, y, rows, starts, t, mode, scale, shrink, scratch, alpha, beta, u, sums, previous, index, team
):
    """Loss, and gradient in sums[scratch], of round t's batch by all threads.

    As `logistic.recursive_gradient`, with `moves` for the step.
    """
    others, numbers, words = team
    rounds = starts.shape[0] - 1
    numbers[SCALE], numbers[SHRINK] = scale, shrink
    numbers[MODE], numbers[SCRATCH] = mode, scratch
    numbers[ALPHA], numbers[BETA] = alpha, beta
    publish(words, 0, t + 1)
    parts = _take_parts(A, y, rows, starts, t, u, sums, previous, index, team)
    wait_for(words, 1 + rounds + t, parts)
    losses = numbers[LISTS + others.shape[1] :]
    loss = losses[0]
    g = sums[scratch]
    for k in range(1, parts):
        loss += losses[k]
        other = others[k - 1]
        for c in range(g.shape[0]):
            for j in range(g.shape[1]):
                g[c, j] += other[c, j]
    return loss
