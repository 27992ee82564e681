"""What the tests of MORGFW and MetaFrankWolfe share: small problems, and the reference's draws."""

from __future__ import annotations

import numpy as np

import fastfw as fw
import reference as ref

SHAPE, RADIUS, B = (3, 5), 2.0, 8
REFERENCE = {fw.MORGFW: ref.morgfw_directions, fw.MetaFrankWolfe: ref.meta_frank_wolfe_directions}


def data(n=64, shape=SHAPE, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, shape[1])).astype(dtype)
    return X, rng.integers(0, shape[0], n)


def stream(rounds, dtype=np.float64, batch_size=B):
    return fw.iid_stream(*data(dtype=dtype), batch_size=batch_size, rounds=rounds, seed=1)


def learner(method, *, reduction="mean", shape=SHAPE, **options):
    problem = fw.SoftmaxRegression(shape[1], shape[0], reduction)
    options.setdefault("base", fw.FTPL(scale=8.0))
    return method(problem, fw.RowL1Ball(shape, RADIUS), seed=(3, 1), **options)


def reference_base(fresh_learner):
    """Return a function that makes the reference's base learners with the same noise."""
    base = fresh_learner.base
    start = fresh_learner._start.astype(fresh_learner.dtype)

    def make(k, length, first_round=1):
        if isinstance(base, fw.OGD):
            return ref.OGD(start, RADIUS, base.step)
        if isinstance(base, fw.RFTL):
            return ref.RFTL(start.shape, RADIUS, base.step, start.dtype)

        def noise(t):
            t = t if base.fresh else first_round
            return base.perturbation(start.shape, t=t, k=k, seed=(3, 1))

        return ref.FTPL(
            start.shape, RADIUS, base.scale, length, noise, start.dtype, first_round=first_round
        )

    return make


def reference_run(fresh_learner, batches):
    """Play the reference with a learner's parameters and draws."""
    own = fresh_learner
    make, step, momentum = reference_base(own), own._schedules["step"], own._schedules["momentum"]
    start = own._start.astype(own.dtype)
    rows = None
    if own.sub_batch_size is not None:

        def rows(t, k):
            return own.sub_batch(t, k, len(tuple(batches[t - 1])[1]))

    directions = REFERENCE[type(own)]
    reduction = own.problem.reduction
    if own.rounds is None:

        def inner(n):
            return own._plan.inner_steps or own._plan.theory(n)

        return ref.doubling(
            start, batches, inner, make, step, momentum, rows, reduction, directions
        )
    return ref.meta_run(
        start, batches, own.inner_steps, lambda k: make(k, own.rounds), step, momentum, rows,
        reduction, directions,
    )  # fmt: skip


def assert_equals_reference(own, batches, tolerance=1e-12):
    """Play round by round; decisions and losses must be those of the reference."""
    wanted = reference_run(own, batches)
    for t, batch in enumerate(batches):
        np.testing.assert_allclose(own.play(), wanted.iterates[t], rtol=0, atol=tolerance)
        loss = own.observe(batch).loss
        np.testing.assert_allclose(loss, wanted.losses[t], rtol=0, atol=20 * tolerance)
    np.testing.assert_allclose(own.play(), wanted.iterates[-1], rtol=0, atol=tolerance)
    average = wanted.iterates[:-1].mean(axis=0)
    np.testing.assert_allclose(own.average, average, rtol=0, atol=tolerance)
    assert own.set.contains(own.play())
    return wanted
