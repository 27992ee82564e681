"""Losses of one's own: problems made of functions, in every learner and against the comparator."""

import contextlib
import functools
from typing import NamedTuple

import numba
import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import fastfw as fw
from learner_cases import LEARNERS, LeastSquares


def squares(x, X, y):
    """Least squares, mean over the batch."""
    residual = X @ x - y
    return 0.5 * residual @ residual / len(y), X.T @ residual / len(y)


def total_cost(x, costs):
    """Sum of linear costs."""
    return float((costs @ x).sum()), costs.sum(axis=0)


def regression(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ np.array([1.0, -0.5, 0.0, 0.0]) + 0.1 * rng.standard_normal(n)


def pairs(X, y, rounds, size=5, seed=1):
    rng = np.random.default_rng(seed)
    return [(X[rows], y[rows]) for rows in rng.integers(0, len(y), (rounds, size))]


METHODS = LEARNERS | {
    "sub-batches": functools.partial(LEARNERS["MORGFW"], sub_batch_size=2),
    "averaged sub-batches": functools.partial(LEARNERS["MetaFrankWolfe"], sub_batch_size=2),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_function_does_what_an_object_does(method):
    make = METHODS[method]
    stream = pairs(*regression(), 20)
    ball = fw.L1Ball(4, radius=1.5)
    result = make(fw.problem_from_function(squares, 4), ball).run(stream)
    wanted = make(LeastSquares((4,)), ball).run(stream)
    assert result.decision.tobytes() == wanted.decision.tobytes()
    assert result.losses.tobytes() == wanted.losses.tobytes()


def test_batches_of_streams_come_apart():
    """A stream's batch has .X and .y; a function of three parameters gets them."""
    seen = []

    def looks(x, X, y):
        seen.append((X.copy(), y.copy()))
        return 0.5 * x @ x, x

    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    stream = fw.iid_stream(X, y, batch_size=3, rounds=2, seed=0)
    fw.OSFW(fw.problem_from_function(looks, 2), fw.Simplex(2)).run(stream)
    assert len(seen) == 2
    for (A, b), batch in zip(seen, stream, strict=True):
        assert np.array_equal(A, batch.X)
        assert np.array_equal(b, batch.y)


def test_comparator_of_least_squares():
    X, y = regression()
    problem, ball = fw.problem_from_function(squares, 4), fw.L1Ball(4, radius=1.2)
    best = fw.best_fixed_decision(problem, ball, X, y, tol=1e-8)
    assert best.n_samples == 60
    assert best.gap <= 1e-8 * best.value
    # in x = p - q, by another solver
    solved = minimize(
        lambda z: squares(z[:4] - z[4:], X, y)[0], np.full(8, 0.1), bounds=[(0, None)] * 8,
        constraints={"type": "ineq", "fun": lambda z: 1.2 - z.sum()}, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert best.lower_bound <= solved.fun + 1e-12
    assert solved.fun <= best.value + 1e-6


def test_comparator_by_frank_wolfe_where_there_is_no_projection():
    """Linear costs over flows: the best fixed flow is a shortest path, at the sum of the costs."""
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)]
    flows = fw.FlowPolytope(edges, 0, 3)
    costs = np.random.default_rng(2).uniform(size=(30, 5))
    problem = fw.problem_from_function(total_cost, 5, reduction="sum")
    best = fw.best_fixed_decision(problem, flows, costs)
    A = np.zeros((4, 5))
    for e, (tail, head) in enumerate(edges):
        A[tail, e], A[head, e] = 1.0, -1.0
    solved = linprog(costs.sum(axis=0), A_eq=A, b_eq=[1, 0, 0, -1])
    assert best.value == pytest.approx(solved.fun, rel=1e-9)
    learner = fw.MORGFW(problem, flows, rounds=30, inner_steps=5)
    stream = [row[np.newaxis] for row in costs]
    curve = fw.regret(learner.run(stream), best, stream)
    played = fw.MORGFW(problem, flows, rounds=30, inner_steps=5)
    losses = [played.observe(batch).loss for batch in stream]
    assert curve[-1] == pytest.approx(sum(losses) - solved.fun, rel=1e-9)
    # reduction "sum": the certificate is divided by rows
    assert curve.upper[-1] - curve.lower[-1] == pytest.approx(best.gap, abs=1e-12)


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (3, TypeError, "loss_and_gradient must be a function"),
        (dict, TypeError, "loss_and_gradient must be a function"),
        (lambda x: (0.0, x), TypeError, r"must take \(x, batch\) or \(x, X, y\)"),
        (lambda x, a, b, c: (0.0, x), TypeError, r"its parameters are \(x, a, b, c\)"),
    ],
)
def test_functions_that_are_none(function, kind, message):
    with pytest.raises(kind, match=message):
        fw.problem_from_function(function, 3)


def test_other_bad_arguments():
    with pytest.raises(ValueError, match="reduction must be"):
        fw.problem_from_function(squares, 3, reduction="median")
    with pytest.raises(ValueError, match="shape"):
        fw.problem_from_function(squares, (3, 0))
    with pytest.raises(TypeError, match=r"batch must be a pair \(X, y\)"):
        fw.ORGFW(fw.problem_from_function(squares, 3), fw.Simplex(3)).observe(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("found", "kind", "message"),
    [
        (None, TypeError, r"must return a pair \(loss, gradient\), but it returned None"),
        (3, TypeError, "returned a int"),
        ((1.0, np.ones(3), 2), TypeError, "returned a tuple of length 3"),
        (np.ones(3), TypeError, r"returned an array of shape \(3,\)"),
        ((1.0, np.ones(2)), ValueError, r"gradient of shape \(3,\), but .* \(2,\)"),
        ((None, np.ones(3)), TypeError, "must return a number as its loss, but it returned None"),
        (("1.0", np.ones(3)), TypeError, "a number as its loss, but it returned a str"),
        (
            (np.ones(1), np.ones(3)),
            TypeError,
            r"its loss, but it returned an array of shape \(1,\)",
        ),
        ((1j, np.ones(3)), TypeError, "its loss, but it returned a complex"),
        ((1.0, None), ValueError, r"gradient of shape \(3,\), but it returned None"),
        ((1.0, 2), ValueError, r"gradient of shape \(3,\), but it returned a int"),
        ((1.0, np.ones(3) * 1j), TypeError, "gradient that wrong returns must hold real numbers"),
        ((1.0, ["a"] * 3), TypeError, "gradient that wrong returns must hold real numbers"),
    ],
)
def test_every_wrong_answer_is_named(found, kind, message):
    def wrong(x, batch):
        return found

    problem = fw.problem_from_function(wrong, 3)
    for call in (
        lambda: problem.loss_and_gradient(np.ones(3), None),
        lambda: fw.ORGFW(problem, fw.Simplex(3)).observe(np.ones((2, 3))),
        lambda: fw.MORGFW(problem, fw.Simplex(3), rounds=2).observe((np.ones((2, 3)), np.ones(2))),
        lambda: fw.best_fixed_decision(problem, fw.Simplex(3), np.ones((2, 3))),
    ):
        with pytest.raises(kind, match=f"wrong .*{message}" if "that" not in message else message):
            call()


def test_integers_and_lists_are_numbers_too():
    problem = fw.problem_from_function(lambda x, batch: (1, [1, 0, 2]), 3)
    assert fw.ORGFW(problem, fw.Simplex(3)).observe(None).loss == 1.0


def test_optional_parameters_and_reprs():
    def scaled(x, batch, factor=2.0):
        return factor * x.sum(), np.full(3, factor)

    problem = fw.problem_from_function(scaled, 3)
    # it could take three, but two are enough
    assert problem.loss_and_gradient(np.ones(3), None)[0] == 6.0
    assert repr(problem) == "<problem from scaled, shape (3,), reduction 'mean'>"
    assert problem.function is scaled
    assert problem.shape == (3,)


class Pair(NamedTuple):
    """A batch with names."""

    X: np.ndarray
    y: np.ndarray


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", [tuple, list, lambda pair: Pair(*pair)])
@pytest.mark.parametrize("which", [0, 1])
def test_batches_are_handed_over_read_only(method, form, which):
    """By learners, the comparator and the regret: what functions and objects could spoil."""

    def spoils(x, X, y):
        (X, y)[which][0] = 7.0
        return squares(x, X, y)

    class Spoils(LeastSquares):
        def loss(self, x, batch):
            return spoils(x, *batch)[0]

        def gradient(self, x, batch):
            return spoils(x, *batch)[1]

    X, y = regression(6)
    before = X.copy(), y.copy()
    for problem in (fw.problem_from_function(spoils, 4), Spoils((4,))):
        learner = METHODS[method](problem, fw.L1Ball(4, 1.0))
        for act in (
            lambda learner=learner: learner.observe(form((X, y))),
            lambda learner=learner: learner.run([form((X, y))]),
            lambda problem=problem: fw.best_fixed_decision(problem, fw.L1Ball(4, 1.0), X, y),
        ):
            with pytest.raises(ValueError, match="read-only"):
                act()
        assert learner.t == 1
    assert np.array_equal(X, before[0])
    assert np.array_equal(y, before[1])
    assert X.flags.writeable


# --- functions that Numba compiled ----------------------------------------------------------------

#: Rounds are compiled once for each function.
compiled = functools.cache(numba.njit)


@numba.njit
def compiled_portfolio(x, relatives):
    """Mean of -log of the wealth's growth."""
    loss, gradient = 0.0, np.zeros_like(x)
    for i in range(len(relatives)):
        growth = (relatives[i] * x).sum()
        loss -= np.log(growth) / len(relatives)
        gradient -= relatives[i] / (growth * len(relatives))
    return loss, gradient


@numba.njit
def compiled_hinge(W, X, y):
    """Multiclass hinge loss, mean over the batch."""
    loss, gradient = 0.0, np.zeros_like(W)
    for i in range(len(y)):
        worst, most = y[i], 0.0
        for c in range(len(W)):
            margin = ((W[c] - W[y[i]]) * X[i]).sum() + (1.0 if c != y[i] else 0.0)
            if margin > most:
                worst, most = c, margin
        loss += most
        gradient[worst] += X[i] / len(y)
        gradient[y[i]] -= X[i] / len(y)
    return loss / len(y), gradient


def hinge(n):
    """A problem of n features, a set and a stream for it."""
    X, y = regression()
    stream = fw.iid_stream(
        np.tile(X, 2)[:, :n], np.arange(len(y)) % 3, batch_size=6, rounds=40, seed=2
    )
    return fw.problem_from_function(compiled_hinge, (3, n)), fw.RowL1Ball((3, n), 2.0), stream


def growth():
    """Return a problem of one array a batch, a set and a stream for it."""
    relatives = np.exp(0.1 * np.random.default_rng(1).standard_normal((40, 3)))
    problem = fw.problem_from_function(compiled_portfolio, 3)
    return problem, fw.Simplex(3), list(relatives[:, None])


@pytest.mark.parametrize("case", [growth, lambda: hinge(4)], ids=["arrays", "pairs"])
def test_compiled_rounds_do_what_steps_do(case):
    """In float64; test_contract.py has float32, too."""
    problem, own, stream = case()
    assert problem.compiled == (not numba.config.DISABLE_JIT)
    learner = fw.ORGFW(problem, own)
    assert learner.engine == ("fused" if problem.compiled else "steps")
    result = learner.run(stream, checkpoints=[7, 20])
    wanted = fw.ORGFW(problem, own, engine="steps").run(stream, checkpoints=[7, 20])
    tolerance = 1e-12
    assert np.abs(result.decision - wanted.decision).max() <= tolerance
    assert np.abs(result.average - wanted.average).max() <= tolerance
    assert np.abs(result.losses - wanted.losses).max() <= tolerance * np.abs(wanted.losses).max()
    assert np.abs(result.decisions - wanted.decisions).max() <= tolerance
    assert result.gradient_evaluations == wanted.gradient_evaluations


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_function_is_compiled_once_for_all_widths():
    from fastfw.kernels.functions import _compiled

    compiled = []
    for n in (4, 5, 8):
        problem, own, stream = hinge(n)
        result = fw.ORGFW(problem, own).run(stream)
        wanted = fw.ORGFW(problem, own, engine="steps").run(stream)
        assert np.abs(result.decision - wanted.decision).max() <= 1e-12
        compiled.append(_compiled.cache_info().misses)
    assert len(set(compiled)) == 1


@numba.njit
def guess(x, X, y):
    """As the first label asks for: a loss that is NaN or infinite, such a gradient, or neither."""
    loss = np.nan if y[0] == 0 else np.inf if y[0] == 1 else 1.0
    return loss, np.full_like(x, np.nan if y[0] == 2 else np.inf if y[0] == 3 else 1.0)


@pytest.mark.parametrize("label", range(4))
def test_what_is_not_finite_leaves_compiled_rounds_as_they_were(label):
    problem = fw.problem_from_function(guess, 3)
    learner = fw.ORGFW(problem, fw.L1Ball(3, 1.0))
    X, good, bad = np.ones((2, 3)), np.full(2, 4), np.full(2, label)
    for _ in range(3):
        learner.observe((X, good))
    before = {name: np.array(a) for name, a in learner._engine.arrays().items()}
    for act in (learner.observe, lambda batch: learner.run([(X, good), batch])):
        with pytest.raises(FloatingPointError, match="round"):
            act((X, bad))
        assert learner.t == 4
        after = learner._engine.arrays()
        assert all(np.array_equal(before[name], after[name]) for name in before)


def says_steps():
    """Expect the warning, which is about compiled functions alone."""
    if numba.config.DISABLE_JIT:
        return contextlib.nullcontext()
    return pytest.warns(fw.EngineWarning, match="no compiled rounds for <problem from compiled")


def test_a_compiled_function_serves_every_learner_and_set():
    relatives = list(np.exp(0.1 * np.random.default_rng(1).standard_normal((20, 1, 3))))
    problem = fw.problem_from_function(compiled_portfolio, 3)
    for method in ("OFW", "MORGFW"):
        with says_steps():
            learner = LEARNERS[method](problem, fw.Simplex(3))
        assert learner.engine == "steps"
        learner.run(relatives)
    with says_steps():
        assert fw.ORGFW(problem, fw.GroupL1Ball([0, 1, 1], 1.0)).engine == "steps"


@pytest.mark.parametrize(
    ("batch", "kind", "message"),
    [
        ((np.ones((2, 4)), np.ones(3)), ValueError, "as many of X as of y, but it has 2 and 3"),
        ((np.ones((0, 4)), np.ones(0)), ValueError, "a batch must have rows"),
        ((np.array([["a"]]), np.ones(1)), TypeError, "must be arrays of numbers"),
        (np.ones(4), TypeError, "batch must be a pair"),
    ],
)
def test_batches_that_compiled_functions_cannot_take(batch, kind, message):
    if numba.config.DISABLE_JIT:
        pytest.skip("without the compiler batches are given as they are")
    learner = fw.ORGFW(*hinge(4)[:2])
    with pytest.raises(kind, match=message):
        learner.observe(batch)
    assert learner.t == 1


@pytest.mark.parametrize(
    "kind",
    [
        *(fw.ORGFW, fw.OSFW, fw.OFW, fw.OAW, fw.RegularizedOFW, fw.MORGFW),
        functools.partial(fw.MORGFW, sub_batch_size=2),
        functools.partial(fw.MetaFrankWolfe, sub_batch_size=2),
    ],
)
@pytest.mark.parametrize("swapped", [(0,), (1,), (0, 1)])
def test_compiled_functions_are_given_bytes_in_the_order_that_they_read(kind, swapped):
    """Numba takes arrays of swapped bytes for what it compiled a function for."""
    problem, own, stream = hinge(4)
    batch = next(iter(stream))
    parts = [batch.X, batch.y]
    for part in swapped:
        parts[part] = parts[part].astype(parts[part].dtype.newbyteorder())
    native, other = (kind(problem, own, engine="steps") for _ in range(2))
    for _ in range(3):
        assert native.observe(batch) == other.observe(tuple(parts))
    assert np.array_equal(native.play(), other.play())
    assert problem.loss(native.play(), batch) == problem.loss(native.play(), tuple(parts))


@numba.njit
def of_shape(w, X, y):
    return 0.5, np.zeros((y[0], y[1]))


@numba.njit
def greedy(w, X, y):
    w[0] = X[0, 0] = 7.0
    return 1.0, np.ones(3 + y[0])


@pytest.mark.parametrize("shape", [(3, 2), (3, 5), (4, 3)])
def test_compiled_gradients_of_another_shape_are_refused(shape):
    """Nothing is read beyond a gradient, and the learner stays as it was."""
    own = fw.RowL1Ball((3, 4), 1.0)
    learner = fw.ORGFW(fw.problem_from_function(of_shape, (3, 4)), own)
    with pytest.raises(ValueError, match=r"gradient.* of shape \(3, 4\)"):
        learner.observe((np.ones((2, 2)), np.array(shape)))
    assert learner.t == 1
    assert not learner.play().any()


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="what it gets is then read-only")
@pytest.mark.parametrize("method", [fw.ORGFW, fw.RegularizedOFW])
def test_compiled_functions_cannot_spoil_the_decision(method):
    ball, X = fw.L1Ball(3, 1.0), np.ones((2, 2))
    learner = method(fw.problem_from_function(greedy, 3), ball)
    learner.observe((X, np.zeros(2, int)))
    assert ball.contains(learner.play())
    with pytest.raises(ValueError, match=r"greedy must return a gradient of shape \(3,\)"):
        learner.observe((X, np.ones(2, int)))
    assert (X == 1.0).all()


#: Functions and what is said of them by their names.
WRONG = {
    "wrong_length": (
        lambda x, X, y: (1.0, np.ones(3), 2.0), "{} must return a pair .* a tuple of length 3"
    ),
    "no_pair": (lambda x, X, y: 1.0, "{} must return a pair .* returned a float"),
    "nothing": (lambda x, X, y: None, "{} must return a pair .* returned None"),
    "complex_loss": (
        lambda x, X, y: (1j, np.ones(3)), "{} must return a number as its loss, .* a complex"
    ),
    "number_as_gradient": (
        lambda x, X, y: (1.0, 2.0), r"{} must return a gradient of shape \(3,\).* a float"
    ),
    "loss_in_an_array": (
        lambda x, X, y: (np.ones(1), np.ones(3)), r"{} must return a number .* of shape \(1,\)"
    ),
    "complex_gradient": (
        lambda x, X, y: (1.0, np.ones(3) * 1j), "gradient that {} returns must hold real numbers"
    ),
    "cannot_be_compiled": (
        lambda x, X, y: (1.0, x.no_such_method(X)),
        "Numba cannot compile {} .*no_such_method.* yourself$",
    ),
}  # fmt: skip


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize(
    ("name", "engine"), [(name, ("fused", "steps")[k % 2]) for k, name in enumerate(WRONG)]
)
def test_wrong_answers_of_compiled_functions_are_named_in_a_line(name, engine):
    function, said = WRONG[name]
    function.__name__ = name
    problem = fw.problem_from_function(compiled(function), 3)
    learner = fw.ORGFW(problem, fw.L1Ball(3, 1.0), engine=engine)
    batch = np.ones((2, 2)), np.zeros(2, int)
    for act in (learner.observe, lambda batch: learner.run([batch])):
        with pytest.raises((TypeError, ValueError), match=said.format(name)) as refused:
            act(batch)
        assert "\n" not in str(refused.value)
        assert refused.value.__suppress_context__ or "Failed in" not in str(refused.value.__cause__)
    assert learner.t == 1
    assert learner.engine == engine


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_compiled_functions_may_return_integers_and_raise():
    @numba.njit
    def whole(x, X, y):
        if y[0] == 0:
            raise ZeroDivisionError("by hand")
        return 1, np.ones(3, np.int64)

    learner = fw.ORGFW(fw.problem_from_function(whole, 3), fw.L1Ball(3, 1.0))
    with pytest.raises(ZeroDivisionError, match="by hand"):
        learner.observe((np.ones((2, 2)), np.zeros(2, int)))
    assert learner.t == 1
    assert learner.observe((np.ones((2, 2)), np.ones(2, int))).loss == 1.0


def takes_a_batch(x, batch):
    X, y = batch
    return squares(x, X, y)


def has_a_default(x, X, y=None):
    residual = X @ x - y
    return 0.5 * residual @ residual / len(y), X.T @ residual / len(y)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("function", [takes_a_batch, has_a_default])
@pytest.mark.parametrize(
    "batch",
    [
        (np.ones((5, 4)), np.ones(5)),
        fw.Dataset(np.ones((2, 4)), [0, 1]),
        None,
    ],
)
def test_compiled_functions_of_a_batch_take_single_arrays(function, batch):
    learner = fw.ORGFW(fw.problem_from_function(compiled(function), 4), fw.L1Ball(4, 1.0))
    name = function.__name__
    wanted = rf"{name} takes \(x, batch\), so .* single arrays .* {name}\(x, X, y\), without def"
    with pytest.raises(TypeError, match=wanted):
        learner.observe(batch)
    assert learner.t == 1
    assert learner.engine == "fused"


@pytest.mark.parametrize("compiled", [False, True])
def test_a_default_that_keeps_a_pair_whole_is_named(compiled):
    """It could take three, two are enough, and it fails."""
    function = numba.njit(has_a_default) if compiled else has_a_default
    problem = fw.problem_from_function(function, 4)
    learner = fw.ORGFW(problem, fw.L1Ball(4, 1.0), engine="steps")
    X, y = regression()
    for act in (
        lambda: learner.run([(X, y)]),
        lambda: learner.observe([X, y]),
        lambda: fw.best_fixed_decision(problem, fw.L1Ball(4, 1.0), X, y),
    ):
        said = r"\w; as its .* pair .* has_a_default\(x, X, y\), without a default for y$"
        with pytest.raises((TypeError, ValueError), match=said) as error:
            act()
        assert "\n" not in str(error.value)
    assert learner.t == 1


@pytest.mark.parametrize("engine", ["fused", "steps"])
@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_is_put_down_to_the_function(engine, loss):
    problem, ball = fw.problem_from_function(guess, 3), fw.L1Ball(3, 1.0)
    X, y = np.ones((2, 3)), np.full(2, 0 if np.isnan(loss) else 1)
    said = f"guess returned the loss {loss}"
    learner = fw.ORGFW(problem, ball, engine=engine)
    with pytest.raises(FloatingPointError, match=f"^round 1: {said}$"):
        learner.run([(X, y)])
    assert learner.t == 1
    with pytest.raises(FloatingPointError, match=f"^iteration 1: {said}\\."):
        fw.SVRF(problem, ball, engine=engine).fit(X, y, iterations=2)
    with pytest.raises(FloatingPointError, match=f"^at the start, {said}$"):
        fw.best_fixed_decision(problem, ball, X, y)


def test_a_gradient_that_is_not_finite_is_put_down_to_the_function():
    problem, ball = fw.problem_from_function(guess, 3), fw.L1Ball(3, 1.0)
    X, y = np.ones((2, 3)), np.full(2, 2)
    with pytest.raises(FloatingPointError, match=r"^round 1: .*gradient"):
        fw.ORGFW(problem, ball).observe((X, y))
    with pytest.raises(FloatingPointError, match="gradients that guess returned is not finite"):
        fw.best_fixed_decision(problem, ball, X, y)
