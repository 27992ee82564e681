"""The linear round, many times without leaving compiled code.

A method is one recursion, with coefficients of its own for each round:

    d ← γ d + α ∇f(x) - β ∇f(x');   v = argmin ⟨d + λ (x - x₁), v⟩;   x ← x + η (v - x)

x' is the previous point, or the last one that was kept (an *anchored* method). Where η is NaN it is
found by line search: the best one in [0, 1] for ⟨d + λ (x - x₁), ·⟩ + λ/2 ‖· - x‖².

A round is composed of features (arrays, bytes, `csr.CSR`, `functions.Gathered`), a model (`models`,
or `functions.Function`) and a set (`sets`), chosen by their types.
"""

from __future__ import annotations

import math

import numpy as np

from . import bounds
from ._atomics import OVER, publish
from ._borrow import borrow, hold
from ._dispatch import ByType
from ._features import block_features, n_features
from ._jit import REASSOCIATE, kernel
from ._state import (
    ESTIMATE_SCALE,
    ESTIMATES,
    LARGEST,
    LAST_STEP,
    NOW,
    OTHER,
    PARITY,
    SCALE,
    START,
    SUM,
    WEIGHT,
    State,
)  # fmt: skip
from .csr import (
    CSR,
    add_gradient,
    added,
    direction_of,
    l1_vertex,
    residuals,
    room_for,
    rows_vertex,
    scale_all,
)
from .few import add_few, few_of, few_residuals, is_few, room_for_few
from .functions import Gathered, evaluate
from .gradients import DENSE_PREVIOUS, NO_PREVIOUS, ONE_VERTEX_BACK
from .l1 import LARGEST_LAZY_STEP, step
from .sets import L1, OWN, SPARSE_ENTRIES, Rows, row_vertex, tail_vertex
from .teams import moves, room_of_parts, shared_gradient

__all__ = ["linear_rounds"]

#: Rows of the coefficients: those above, and whether d and x stay as the estimate and as x'.
ALPHA, BETA, GAMMA, PULL, ETA, KEEP = 0, 1, 2, 3, 4, 5

#: Below this an estimate's scale is folded into it: long before anything overflows.
SMALLEST_ESTIMATE_SCALE = 2.0**-60

#: Estimates on sparse rows stay below this, whatever is added to them.
_LIMIT_64, _LIMIT_32 = (float(np.finfo(real).max) / 4.0 for real in (np.float64, np.float32))


@kernel()
def previous_point(anchored, last, beta, value, moved):
    """Where the outputs at x' come from, and by what x has shrunk since.

    moved[c] is what the step of length `last` towards a vertex with these values added.
    """
    mode = NO_PREVIOUS
    if beta != 0.0:
        mode = DENSE_PREVIOUS if anchored or last > LARGEST_LAZY_STEP else ONE_VERTEX_BACK
    for c in range(value.shape[0]):
        for q in range(value.shape[1]):
            moved[c, q] = last * value[c, q]
    shrink = 1.0 / (1.0 - last) if mode == ONE_VERTEX_BACK else 1.0
    return mode, shrink


@kernel(fastmath=REASSOCIATE)
def blend(d, g, gamma, scale):
    """G ← gamma d + scale g."""
    for j in range(g.shape[0]):
        g[j] = gamma * d[j] + scale * g[j]


@kernel(fastmath=REASSOCIATE)
def pulled(g, strength, u, scale, start, direction):
    """Direction = g + strength (scale u - start)."""
    for j in range(direction.shape[0]):
        direction[j] = g[j] + strength * (scale * u[j] - start[j])


@kernel()
def _in_unit(a, per):
    """Scale without the freedom to multiply in another order, which could leave the range."""
    return per * np.float64(a)


@kernel(fastmath=REASSOCIATE)
def _products(direction, u, per):
    """⟨direction, per u⟩ and ‖per u‖²."""
    gap, bend = 0.0, 0.0
    for j in range(u.shape[0]):
        scaled = _in_unit(u[j], per)
        gap += np.float64(direction[j]) * scaled
        bend += scaled * scaled
    return gap, bend


@kernel()
def look(direction, s, u, index, value, line):
    """Add ⟨direction, x - v⟩ and ‖x - v‖² to `line`, in its unit, for a line from s u to v."""
    per = 1.0 / line[2]
    gap, bend = _products(direction, u, per)
    gap, bend = s * gap, s * s * bend
    for q in range(index.shape[0]):
        j, v = index[q], per * value[q]
        gap -= np.float64(direction[j]) * v
        bend += v * (v - 2.0 * s * (per * np.float64(u[j])))
    line[0] += gap
    line[1] += bend


@kernel()
def line_for(eta, reach, room):
    """Room for `look`, none where the step is given: two sums, and the unit of lengths they are in.

    The unit is a power of 2 near `reach`: no square leaves the range of floats, no bit changes.
    """
    line = room[: 3 if np.isnan(eta) else 0]
    line[:] = 0.0
    if line.shape[0] > 0:
        line[2] = math.ldexp(1.0, max(-1020, min(math.frexp(reach)[1], 1020)))
    return line


@kernel()
def best_step(line, pull):
    """The step in [0, 1] that is best along a line of `look`."""
    gap, bend = line[0], pull * line[2] * line[1]
    if gap >= bend:
        return 1.0
    return gap / bend if gap > 0.0 else 0.0


@kernel()
def _no_tail(model, set, gamma, reduction, pull, parity, state, first, index, value, line):
    return True


@kernel()
def _some_tail(model, set, gamma, reduction, pull, parity, state, first, index, value, line):
    """The tail's estimate, where its gradient was, and its vertex; False where it is not finite."""
    tails = state.tails
    g = tails[ESTIMATES + 1 - parity]
    blend(tails[ESTIMATES + parity], g, gamma, reduction)
    if pull != 0.0:
        direction = np.empty_like(g)
        pulled(g, pull, tails[NOW], 1.0, tails[START], direction)
        finite = tail_vertex(set, direction, first, index, value)
        if finite and line.shape[0] > 0:
            places, values = index[first:].ravel(), value[first:].ravel()
            look(direction, 1.0, tails[NOW], places, values, line)
        return finite
    return tail_vertex(set, g, first, index, value)


#: Choose the tail's vertex, of models that have one.
_choose_tail = ByType(
    {type(None): _no_tail, object: _some_tail},
)


@kernel()
def move_tail(now, total, places, values, eta):
    """Add the present tail to the sum, and step to the vertex."""
    for i in range(now.shape[0]):
        total[i] += now[i]
        now[i] *= 1.0 - eta
    for k in range(places.shape[0]):
        now[places[k]] += eta * values[k]


@kernel()
def _commit(anchored, keep, eta, parity, state, index, value, places):
    """Keep and step, once the round is known to go well.

    ``places[c]`` are where the entries of row c are in the first layer, seen as one flat array.
    """
    u, other, scalars, tails = state.u, state.other, state.scalars, state.tails
    for c in range(state.index.shape[0]):
        for q in range(index.shape[1]):
            state.index[c, q], state.value[c, q] = index[c, q], value[c, q]
    if keep:
        if anchored:
            scale = u.dtype.type(scalars[SCALE])
            flat, point = u.ravel(), other.ravel()
            for j in range(flat.shape[0]):
                point[j] = scale * flat[j]
        for i in range(tails.shape[1]):
            tails[OTHER, i] = tails[NOW, i]
        scalars[PARITY] = 1 - parity
    previous = other[:0] if anchored else other
    n = state.index.shape[0]
    scalars[SCALE], scalars[WEIGHT] = step(
        u, state.low, state.total, previous, scalars[SCALE], scalars[WEIGHT] + scalars[SCALE],
        places.ravel(), value[:n].ravel(), eta, state.support, state.known,
    )  # fmt: skip
    scalars[LAST_STEP] = eta
    move_tail(tails[NOW], tails[SUM], index[n:].ravel(), value[n:].ravel(), eta)


# ---------------------------------------------------------------------- floats and bytes


@kernel()
def _dense_gradient(
    A, model, y, rows, starts, t, mode, shrink, alpha, beta, state, moved, team, space
):
    batch, tails = rows[starts[t] : starts[t + 1]], state.tails
    if is_few(batch.shape[0], n_features(A)):
        return few_residuals(
            A, model, y, batch, state.u, state.scalars[SCALE], tails[NOW], mode, state.other,
            tails[OTHER], state.index, moved, shrink, alpha, beta,
            tails[ESTIMATES + 1 - int(state.scalars[PARITY])], space[3],
        )  # fmt: skip
    return shared_gradient(
        A, model, y, rows, starts, t, mode, shrink, alpha, beta, state, moved, team, space
    )


@kernel()
def _dense_conclude(
    A, model, set, batch, how, anchored, reduction, reach, state, space, index, value, places
):
    gamma, pull, eta, keep = how[GAMMA], how[PULL], how[ETA], how[KEEP] != 0.0
    u, scalars = state.u, state.scalars
    n, d = u.shape[0], n_features(A)
    real = u.dtype.type
    parity = int(scalars[PARITY])
    old, g = state.estimates[parity], state.estimates[1 - parity]
    direction, line = space[0], line_for(eta, reach, space[2])
    if not _choose_tail(model, set, gamma, reduction, pull, parity, state, n, index, value, line):
        return False
    few = is_few(batch.shape[0], d)
    features, at = block_features(A, batch[: batch.shape[0] if few else 0], batch[:0], space[3][1])
    # row by row, so that each is searched while it is in the cache
    for c in range(n):
        row = g[c, :d]
        if few:
            add_few(old[c, :d], features, at, space[3][0][c], real(gamma), real(reduction), row)
        else:
            blend(old[c], g[c], real(gamma), real(reduction))
        if pull != 0.0:
            pulled(row, real(pull), u[c], real(scalars[SCALE]), state.start[c], direction)
            row = direction
        if not row_vertex(set, row, c, index[c], value[c]):
            return False
        if line.shape[0] > 0:
            look(row, scalars[SCALE], u[c, :d], index[c], value[c], line)
    if line.shape[0] > 0:
        eta = best_step(line, pull)
    for c in range(n):
        for q in range(index.shape[1]):
            places[c, q] = c * u.shape[1] + index[c, q]
    _commit(anchored, keep, eta, parity, state, index, value, places)
    return True


@kernel()
def _dense_space(A, model, starts, state, pulls, team):
    u, tail = state.u, state.tails[NOW]
    direction = np.empty(n_features(A) if pulls else 0, u.dtype)
    # what no batch of the run needs is not made: the other room stands in its place
    longest, alone = few_of(starts, n_features(A))
    if longest > 0:
        few = room_for_few(A, model, u, tail, longest)
    if longest > 0 and alone:
        R, decoded, Z, space = few
        room = Z, R, space, decoded, np.empty((0, 1), np.uintp), np.empty(0, np.intp)
    else:
        room = room_of_parts(A, model, starts, u, state.tails, state.index, team)
    if longest == 0:
        few = room[1], room[3], room[0], room[2]
    return direction, room, np.empty(3, np.float64), few


# ---------------------------------------------------------------------- sparse rows


@kernel()
def _sparse_gradient(
    A, model, y, rows, starts, t, mode, shrink, alpha, beta, state, moved, team, space
):
    batch = rows[starts[t] : starts[t + 1]]
    tails = state.tails
    return residuals(
        A, model, y, batch, state.u, state.scalars[SCALE], tails[NOW], mode, state.other,
        tails[OTHER], state.index, moved, state.slots, shrink, alpha, beta,
        space[1][: batch.shape[0]], tails[ESTIMATES + 1 - int(state.scalars[PARITY])], space[0],
    )  # fmt: skip


@kernel()
def _count(kinds, kind):
    """How many are of this kind."""
    n = 0
    for own in kinds:
        n += own == kind
    return n


@kernel()
def _sparse_vertex(set, A, batch, d, scale, pull, state, by_bounds, index, value):
    """The vertex of the first rows; returns a bound on the entries of d̃, infinity if there is none.

    It is found by bounds, where that is less to look at than a sweep.
    """
    n = index.shape[0]
    balls, few = _count(set.kind[:n], L1) == n, _count(set.kind[:n], SPARSE_ENTRIES) == n
    for c in range(n):
        for q in range(set.count[c], index.shape[1]):
            index[c, q], value[c, q] = 0, 0.0
    if not (by_bounds and (balls or few)):
        bounds.forget(state.tree)
        u, s, start = state.u, state.scalars[SCALE], state.start
        if balls:
            largest = l1_vertex(d, scale, pull, u, s, start, set.radius, index, value)
            return largest / scale if pull != 0.0 else largest
        return rows_vertex(set, d, scale, pull, u, s, start, index, value)
    edges, tree, leaders = state.edges, state.tree, state.leaders
    bounds.raise_bounds(A.indices, A.indptr, batch, d, edges, tree, few, leaders, state.slots)
    largest = 0.0
    if balls:
        largest = bounds.first_largest(d, edges, tree, index[:, 0])
    for c in range(n):
        used = index[c, : set.count[c]]
        if few:
            largest = max(largest, bounds.first_k_largest(d, edges, tree, leaders, c, used))
        for q in range(used.shape[0]):
            value[c, q] = -set.radius[c] if d[used[q], c] >= 0 else set.radius[c]
    return largest


@kernel()
def _sparse_conclude(
    A, model, set, batch, how, anchored, reduction, reach, state, space, index, value, places
):
    gamma, pull, eta, keep = how[GAMMA], how[PULL], how[ETA], how[KEEP] != 0.0
    u, scalars = state.u, state.scalars
    n = u.shape[1]
    real = u.dtype.type
    parity = int(scalars[PARITY])
    R, line = space[1][: batch.shape[0]], line_for(eta, reach, space[2])
    if not _choose_tail(model, set, gamma, reduction, pull, parity, state, n, index, value, line):
        return False
    # d = scale d̃ needs no sweep to shrink. Nothing is changed before the round is known to go well.
    growth, touched = added(A, batch, R)
    growth = reduction * growth + pull * reach
    scale, largest = scalars[ESTIMATE_SCALE] * gamma, scalars[LARGEST]
    limit = _LIMIT_64 if u.itemsize == 8 else _LIMIT_32
    folded = scale < SMALLEST_ESTIMATE_SCALE or not largest + growth / scale < limit
    if folded and not largest * scale + growth < limit:
        return False
    d = state.estimates[0]
    aside = not keep or _count(set.kind, OWN) > 0  # functions of the user's may fail
    if aside:
        d = state.estimates[1]
        d[:] = state.estimates[0]
    if folded:
        if largest > 0.0:
            scale_all(d, scale)
            bounds.shrink(real(scale), state.tree)
        scale = 1.0
    for k in range(R.shape[0]):
        for c in range(n):
            R[k, c] *= real(reduction / scale)
    add_gradient(A, batch, R, d)
    by_bounds = keep and pull == 0.0 and touched < d.shape[0]
    largest = _sparse_vertex(
        set, A, batch, d, scale, pull, state, by_bounds, index[:n], value[:n]
    )  # fmt: skip
    if not np.isfinite(largest):
        return False
    if line.shape[0] > 0:
        for c in range(n):
            row = direction_of(d, scale, pull, u, scalars[SCALE], state.start, c)
            look(row, scalars[SCALE], u[:, c], index[c], value[c], line)
        eta = best_step(line, pull)
    if pull != 0.0:  # that of the direction, which is not d̃ itself
        largest += pull * reach / scale
    if keep:
        if aside:
            state.estimates[0][:] = d
        scalars[ESTIMATE_SCALE], scalars[LARGEST] = scale, largest
    for c in range(n):
        for q in range(index.shape[1]):
            places[c, q] = index[c, q] * n + c
    _commit(anchored, keep, eta, parity, state, index, value, places)
    return True


@kernel()
def _sparse_space(A, model, starts, state, pulls, team):
    longest = 0
    for t in range(starts.shape[0] - 1):
        longest = max(longest, starts[t + 1] - starts[t])
    room = room_for(model, state.u, state.tails[NOW], longest, state.index.size)
    return room, np.empty((longest, state.u.shape[1]), state.u.dtype), np.empty(3, np.float64)


# ---------------------------------------------------------------------- functions of the user's


@kernel()
def _gathered_gradient(
    A, model, y, rows, starts, t, mode, shrink, alpha, beta, state, moved, team, space
):
    batch = rows[starts[t] : starts[t + 1]]
    tails, real = state.tails, state.u.dtype
    g = tails[ESTIMATES + 1 - int(state.scalars[PARITY])]
    loss = evaluate(model, tails[NOW].astype(real), A.X, y, batch, g)
    for j in range(g.shape[0]):
        g[j] *= alpha
    if beta != 0.0 and np.isfinite(loss):
        other = space[0]
        evaluate(model, tails[OTHER].astype(real), A.X, y, batch, other)
        for j in range(g.shape[0]):
            g[j] -= beta * other[j]
    return loss


@kernel()
def _gathered_conclude(
    A, model, set, batch, how, anchored, reduction, reach, state, space, index, value, places
):
    parity, pull, eta = int(state.scalars[PARITY]), how[PULL], how[ETA]
    line = line_for(eta, reach, space[1])
    if not _choose_tail(
        model, set, how[GAMMA], reduction, pull, parity, state, 0, index, value, line
    ):
        return False
    if line.shape[0] > 0:
        eta = best_step(line, pull)
    _commit(anchored, how[KEEP] != 0.0, eta, parity, state, index, value, places)
    return True


@kernel()
def _gathered_space(A, model, starts, state, pulls, team):
    return np.empty(state.tails.shape[1]), np.empty(3, np.float64)


# ---------------------------------------------------------------------- all of them

_gradient = ByType(
    {CSR: _sparse_gradient, Gathered: _gathered_gradient, object: _dense_gradient},
)
_conclude = ByType(
    {CSR: _sparse_conclude, Gathered: _gathered_conclude, object: _dense_conclude},
)
_space = ByType(
    {CSR: _sparse_space, Gathered: _gathered_space, object: _dense_space},
)


@kernel()
def linear_rounds(
    features, mean, model, set, y, rows, starts, anchored, reach, how, u, low, other, estimates,
    start, total, tails, index, value, scalars, edges, tree, leaders, slots, support, known, others,
    numbers, words, losses,
):  # fmt: skip
    """Play rounds; that of number t has the batch rows[starts[t]:starts[t+1]].

    ``how[:, t]`` are its coefficients. `reach` bounds the entries of x - x_1. Batches of floats and
    bytes are shared by a team of threads, or of one, see `teams`: others, numbers, words.

    Returns the number of rounds done, which ``losses[-1]`` is when each of them is whole. It is
    less than asked for where a loss or a direction is not finite; losses[t] then holds that loss,
    and the state is as before that round.
    """
    u, index, value, scalars = borrow(u), borrow(index), borrow(value), borrow(scalars)
    state = borrow(State(
        u, low, other, estimates, start, total, tails, index, value, scalars, edges, tree, leaders,
        slots, support, known,
    ))  # fmt: skip
    features, y, rows_of, team = borrow((features, y, Rows(*set), (others, numbers, words)))
    rows, starts, how, losses = borrow((rows, starts, how, losses))
    moved = moves(team, index)
    pulls = np.bool_(False)
    n, done = losses.shape[0] - 1, 0
    for t in range(n):
        pulls |= how[PULL, t] != 0.0
    n_entries = index.shape[1]
    own = (
        _space(features, model, starts, state, pulls, team),
        np.empty((rows_of.end.shape[0], n_entries), np.intp),
        np.empty((rows_of.end.shape[0], n_entries), np.float64),
        np.empty((index.shape[0], n_entries), np.intp),
    )
    space, new_index, new_value, places = borrow(own)
    for t in range(n):
        mode, shrink = previous_point(anchored, scalars[LAST_STEP], how[BETA, t], value, moved)
        loss = _gradient(
            features, model, y, rows, starts, t, mode, shrink, how[ALPHA, t], how[BETA, t], state,
            moved, team, space,
        )  # fmt: skip
        batch = rows[starts[t] : starts[t + 1]]
        reduction = 1.0 / batch.shape[0] if mean else 1.0
        losses[t] = loss * reduction
        if not np.isfinite(loss) or not _conclude(
            features, model, rows_of, batch, how[:, t], anchored, reduction, reach, state, space,
            new_index, new_value, places,
        ):  # fmt: skip
            break
        done = t + 1
        losses[n] = done
    hold(own)
    publish(words, 0, OVER)
    return done
