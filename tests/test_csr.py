"""Sparse features: checked at the door, and the same models as from dense ones."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

import fastfw as fw
import reference as ref
from fastfw._csr import csr_features
from fastfw.kernels import bounds
from fastfw.kernels import csr as kernels
from fastfw.sets._convex import random_vertex
from fastfw.sklearn import ProjectionFreeClassifier as Classifier
from fastfw.streams import Batch, Dataset
from learner_cases import METHODS, RADIUS, make, problem_and_ball, same
from sizes import quick, sized

N, D, C = 40, 9, 3
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def make_data(seed=0, n=N, d=D, n_classes=C, density=0.3, dtype=np.float64):
    """Features most of which are zero, some rows entirely, and labels."""
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((n, d)) < density, rng.standard_normal((n, d)), 0.0)
    return A.astype(dtype), rng.permutation(np.arange(n) % n_classes)


def make_stream(X, y, rounds):
    return fw.iid_stream(X, y, batch_size=5, rounds=rounds, seed=1)


# --- at the door ----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?"])
def test_any_format_and_dtype(format, dtype):
    A, _ = make_data()
    A = (np.rint(A) if dtype in ("i4", "?") else A).astype(dtype)
    for kind in (sparse.csr_matrix, sparse.csr_array):
        X = csr_features(kind(A).asformat(format))
        assert X.dtype == (np.float32 if dtype == "f4" else np.float64)
        assert X.dtype.isnative
        assert same(X.toarray(), np.ascontiguousarray(A, X.dtype))
        assert X.indices.dtype == X.indptr.dtype == np.int32


def test_canonical_memory_is_shared_and_sealed():
    A, y = make_data()
    S = sparse.csr_matrix(A)
    X = Dataset(S, y).X
    for part in ("data", "indices", "indptr"):
        assert np.shares_memory(getattr(X, part), getattr(S, part))
        assert not getattr(X, part).flags.writeable
        assert getattr(S, part).flags.writeable


def unsorted(A):
    S = sparse.csr_array(A)
    for i in range(S.shape[0]):
        part = slice(S.indptr[i], S.indptr[i + 1])
        S.data[part] = S.data[part][::-1].copy()
        S.indices[part] = S.indices[part][::-1].copy()
    return S


def test_unsorted_and_doubled_entries_are_put_right_in_a_copy():
    A, _ = make_data()
    S = unsorted(A)
    S.has_sorted_indices = S.has_canonical_format = True  # a lie
    before = S.data.copy(), S.indices.copy()
    X = csr_features(S)
    assert same(X.toarray(), A)
    assert (X.indices[:2] == np.flatnonzero(A[0])[:2]).all()
    assert same(S.data, before[0])
    assert same(S.indices, before[1])
    double = sparse.csr_array(
        (np.ones(4), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3)
    )
    assert csr_features(double).toarray().tolist() == [[1, 0, 2], [0, 1, 0]]
    assert double.nnz == 4


def test_wide_indices_are_narrowed():
    S = sparse.csr_array(make_data()[0])
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    assert csr_features(S).indices.dtype == csr_features(S).indptr.dtype == np.int32
    wide = csr_features(sparse.csr_array((1, 2**31)))
    assert wide.indices.dtype == wide.indptr.dtype == np.int64


def broken(**parts):
    S = sparse.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]))
    for name, value in parts.items():
        setattr(S, name, np.array(value))
    return S


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (broken(indices=[0, 3, 2]), ValueError, r"X.indices\[1\] is 3; with 3 columns"),
        (broken(indices=[0, -1, 2]), ValueError, r"X.indices\[1\] is -1"),
        (broken(indptr=[0, 2]), ValueError, "X.indptr must have 3 entries"),
        (broken(indptr=[0, 3, 2]), ValueError, "do not decrease"),
        (broken(indptr=[1, 2, 3]), ValueError, "begin with 0"),
        (broken(indptr=[0, 2, 4]), ValueError, "ends with 4, but there are 3 indices"),
        (broken(indices=[0.0, 1.0, 2.0]), ValueError, "X.indices must have one axis of integers"),
        (broken(data=[1.0, np.nan, 3.0]), ValueError, r"X\[0, 1\] is nan; X must be finite"),
        (broken(data=[1.0, 2.0, -np.inf]), ValueError, r"X\[1, 2\] is -inf"),
        (sparse.csr_array(np.eye(2) * 1j), TypeError, "real numbers, but its dtype is complex"),
        (sparse.csr_array((0, 3)), ValueError, r"X is empty: its shape is \(0, 3\)"),
        (sparse.csr_array((2, 4)), ValueError, "X has 4 columns, but 3 features are wanted"),
        (sparse.coo_array(np.ones(3)), ValueError, "must be a matrix"),
    ],
)
def test_what_is_no_matrix_is_refused(X, error, message):
    y = np.zeros(X.shape[0], int)
    problem = fw.SoftmaxRegression(3, 2)
    with pytest.raises(error, match=message):
        problem.rows((X, y))
    learner = fw.ORGFW(problem, fw.RowL1Ball((2, 3), 1.0))
    with pytest.raises(error, match=message):
        learner.observe((X, y))
    assert learner.t == 1


def corrupt(format, **parts):
    """Sound but for what is put in place of an array, or into an item of one."""
    S = sparse.coo_array(np.arange(1.0, 25.0).reshape(6, 4)).asformat(format)
    for name, value in parts.items():
        if isinstance(value, tuple):
            getattr(S, name)[value[0]] = value[1]
        else:
            setattr(S, name, value)
    return S


FAR, INT = 10**8, np.int32
CORRUPT = {  # the first of each format, and most others, left the memory of the matrix
    "lil, far column": (corrupt("lil", rows=(0, [0, 1, 2, FAR])), r"row 0, column 100000000"),
    "lil, next column": (corrupt("lil", rows=(5, [0, 1, 2, 4])), r"row 5, column 4, .*\(6, 4\)"),
    "lil, negative column": (corrupt("lil", rows=(0, [-1, 1, 2, 3])), "column -1"),
    "lil, more columns": (corrupt("lil", rows=(1, [0, 1] * 99)), r"X.rows\[1\] has 198 columns"),
    "lil, more values": (corrupt("lil", data=(1, [0.0] * 99)), r"X.data\[1\] has 99 values"),
    "lil, no integer": (corrupt("lil", rows=(0, [0, 1, 2, 2.5])), "X.rows must be integers"),
    "lil, huge integer": (corrupt("lil", rows=(0, [0, 1, 2, 10**30])), "X.rows must be integers"),
    "lil, no list": (corrupt("lil", rows=(0, None)), "X.rows must be an array of 6 lists"),
    "lil, few rows": (corrupt("lil", rows=corrupt("lil").rows[:3]), "X.rows must be an array of 6"),
    "lil, no number": (corrupt("lil", data=(0, ["a"] * 4)), "X.data must be numbers that float64"),
    "coo, far row": (corrupt("coo", row=(3, FAR)), "row 100000000, column 3"),
    "coo, negative column": (corrupt("coo", col=(2, -1)), "row 0, column -1"),
    "coo, far column": (corrupt("coo", col=(2, 50)), "row 0, column 50"),
    "coo, few values": (corrupt("coo", data=np.ones(3)), r"\(3,\), \(24,\) and \(24,\)"),
    "coo, two axes": (corrupt("coo", data=np.ones((24, 1))), r"are \(24, 1\), \(24,\)"),
    "csc, far row": (corrupt("csc", indices=(2, FAR)), r"X.indices\[2\] is 100000000; with 6 rows"),
    "csc, negative row": (corrupt("csc", indices=(2, -1)), r"X.indices\[2\] is -1; with 6 rows"),
    "csc, far end": (corrupt("csc", indptr=(4, FAR)), "X.indptr ends with 100000000"),
    "csc, back": (corrupt("csc", indptr=(2, -5)), "do not decrease"),
    "bsr, far block": (corrupt("bsr", indices=(0, FAR)), "with 2 columns of blocks"),
    "bsr, few ends": (corrupt("bsr", indptr=np.zeros(2, INT)), "X.indptr must have 4 entries"),
    "bsr, flat": (corrupt("bsr", data=np.ones(24)), "blocks that divide its shape"),
    "bsr, blocks": (corrupt("bsr", data=np.ones((6, 5, 3))), "blocks that divide its shape"),
    "dia, few offsets": (corrupt("dia", offsets=np.ones(1, INT)), "each of the 1 offsets"),
    "dia, no integers": (corrupt("dia", offsets=np.zeros(9)), "X.offsets must have one axis of"),
    "dia, flat": (corrupt("dia", data=np.ones(9)), "each of the 9 offsets"),
    "dok, far column": (corrupt("dok", _dict=((0, 50), 1.0)), "row 0, column 50"),
    "dok, negative row": (corrupt("dok", _dict=((-1, 0), 1.0)), "row -1, column 0"),
    "dok, no integer": (corrupt("dok", _dict=((0, 1.5), 1.0)), "keys of X must be integers"),
    "dok, no pair": (corrupt("dok", _dict=((0, 1, 2), 1.0)), "keys of X must be pairs"),
    "dok, no number": (corrupt("dok", _dict=((0, 0), "x")), "values of X must be numbers"),
    "csr, mask": (corrupt("csr", data=np.ma.ones(24)), r"X.data is a masked array; .*filled"),
    "csr, list": (corrupt("csr", indices=[0] * 24), "X.indices must be an array, but it is a list"),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_parts_that_do_not_fit_are_found_before_they_are_read(case):
    X, message = CORRUPT[case]
    with pytest.raises((TypeError, ValueError), match=message):
        csr_features(X)


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_unusual_but_sound_is_read(format):
    for shape in ((3, 2), (1, 5)):
        assert csr_features(sparse.coo_array(shape).asformat(format)).nnz == 0
    A = np.arange(1.0, 25.0).reshape(6, 4)
    S = corrupt(format)
    if format == "dia":  # beyond the matrix, and longer than it is wide
        S.offsets, S.data = np.r_[S.offsets[:-1], -(2**31)].astype(INT), np.pad(S.data, (0, 3))[:9]
        A = np.where(S.offsets.max() >= np.arange(4) - np.arange(6)[:, np.newaxis], A, 0.0)
    if format == "coo":
        S.has_canonical_format = True  # a lie
        S.coords = tuple(np.r_[c, c].astype(np.uint8) for c in S.coords)
        S.data, A = np.r_[S.data, S.data], A * 2
    if format in ("csc", "csr"):  # room for more at the end
        S.indices, S.data = np.r_[S.indices, [FAR] * 9], np.r_[S.data, [np.nan] * 9]
    if format == "lil":
        S.rows[0], S.data[0] = [3, 0, 3], [1.0, 2.0, 4.0]
        A[0] = [2.0, 0.0, 0.0, 5.0]
    before = pickle.dumps(S)
    assert csr_features(S).toarray().tolist() == A.tolist()
    assert pickle.dumps(S) == before


def own_loss(x, X, y):
    P = X @ x.T
    return float((P**2).sum()), (X.T @ (2.0 * P)).T


def observe(problem, **options):
    return lambda X, y: fw.ORGFW(problem, fw.RowL1Ball((3, 4), 2.0), **options).observe((X, y))


BALL, SOFTMAX = fw.RowL1Ball((3, 4), 2.0), fw.SoftmaxRegression(4, 3)
OWN, ZEROS, LABELS = fw.problem_from_function(own_loss, (3, 4)), np.zeros((3, 4)), np.arange(6) % 3
RUN = fw.ORGFW(SOFTMAX, BALL).run([(np.eye(4)[:3], [0, 1, 2])], checkpoints=[1, 2])
MODEL = Classifier(radius=2.0, tol=1.0).fit(np.eye(6)[:, :4], LABELS)
PARTS = {"rounds": 2, "inner_steps": 2, "sub_batch_size": 2}
ENTRANCES = {
    "observe": observe(SOFTMAX),
    "steps": observe(SOFTMAX, engine="steps"),
    "function": observe(OWN),
    "run": lambda X, y: fw.OFW(SOFTMAX, BALL).run([(X, y)]),
    "fit": lambda X, y: fw.SVRF(SOFTMAX, BALL).fit(X, y, iterations=2),
    "fit a function": lambda X, y: fw.SVRF(OWN, BALL).fit(X, y, iterations=2),
    "fit a path": lambda X, y: fw.SpiderFW(OWN, BALL).fit(X, y, iterations=2),
    "sub-batches": lambda X, y: fw.MORGFW(OWN, BALL, **PARTS).observe((X, y)),
    "dataset": Dataset,
    "stream": lambda X, y: fw.iid_stream(X, y, batch_size=2, rounds=2),
    "sorted": lambda X, y: fw.sorted_stream(X, y, batch_size=2, rounds=2),
    "loss": lambda X, y: SOFTMAX.loss(ZEROS, (X, y)),
    "gradient": lambda X, y: SOFTMAX.gradient(ZEROS, (X, y)),
    "predict": lambda X, y: SOFTMAX.predict(ZEROS, X),
    "smoothness": lambda X, y: SOFTMAX.smoothness(X),
    "function's loss": lambda X, y: OWN.loss(ZEROS, (X, y)),
    "comparator": lambda X, y: fw.best_fixed_decision(SOFTMAX, BALL, X, y),
    "function's comparator": lambda X, y: fw.best_fixed_decision(OWN, BALL, X, y),
    "gap": lambda X, y: fw.frank_wolfe_gap(OWN, BALL, ZEROS, (X, y)),
    "trace": lambda X, y: fw.trace(
        RUN, SOFTMAX, BALL, np.eye(4)[:3], [0, 1, 2], X_test=X, y_test=y
    ),
    "classifier": lambda X, y: Classifier(radius=2.0).fit(X, y),
    "partial_fit": lambda X, y: Classifier().partial_fit(X, y, classes=[0, 1, 2]),
    "decision_function": lambda X, y: MODEL.decision_function(X),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("case", ["lil, next column", "coo, negative column", "csc, far end"])
def test_no_entrance_reads_parts_that_do_not_fit(entrance, case):
    X, message = CORRUPT[case]
    with pytest.raises(ValueError, match=message):
        ENTRANCES[entrance](X, LABELS)


def test_too_large_for_single_precision():
    S = sparse.csr_array([[0.0, 1e300]])
    with pytest.raises(ValueError, match=r"X\[0, 1\] is 1e\+300, which float32 cannot hold"):
        Dataset(S, [0]).astype(np.float32)


def test_datasets_and_batches():
    A, y = make_data()
    data, dense = Dataset(sparse.csc_matrix(A), y), Dataset(A, y)
    assert repr(data) == repr(dense)
    assert len(data) == N
    single = data.astype(np.float32)
    assert single.dtype == np.float32
    assert data.astype(np.float32) is single
    batch = Batch(data, [3, 3, 0])
    assert same(batch.X.toarray(), A[[3, 3, 0]])
    assert batch.X.has_canonical_format
    assert not batch.X.data.flags.writeable
    loaded = pickle.loads(pickle.dumps(data))
    assert same(loaded.X.toarray(), A)
    order = [batch.X.toarray() for batch in fw.sorted_stream(data, batch_size=5, rounds=4)]
    wanted = [batch.X for batch in fw.sorted_stream(dense, batch_size=5, rounds=4)]
    np.testing.assert_array_equal(order, wanted)


# --- losses and gradients -------------------------------------------------------------------------


@quick
@given(
    st.integers(1, 70), st.integers(1, 40), st.integers(2, 35), st.floats(0.0, 1.0),
    st.sampled_from(["mean", "sum"]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_losses_and_gradients_are_those_of_dense_features(n, d, n_classes, density, reduction, k):
    A, y = make_data(k, n, d, n_classes, density)
    W = np.random.default_rng(k).standard_normal((n_classes, d))
    problem = fw.SoftmaxRegression(d, n_classes, reduction=reduction)
    batch = (sparse.csr_matrix(A), y)
    value, gradient = ref.loss_and_gradient(W, A, y, reduction)
    scale = max(1.0, np.abs(A).sum()) if reduction == "sum" else max(1.0, np.abs(A).max())
    tol = 1e-13 * scale * max(1.0, np.abs(A @ W.T).max())
    loss, found = problem.loss_and_gradient(W, batch)
    assert abs(loss - value) <= tol * n
    assert np.abs(found - gradient).max() <= tol
    assert found.flags.c_contiguous
    assert abs(problem.sample_losses(W, batch).sum() * problem.weight(n) - value) <= tol * n
    assert np.abs(problem.logits(W, batch[0]) - A @ W.T).max() <= tol
    assert problem.smoothness(batch[0]) == pytest.approx(problem.smoothness(A), rel=1e-14)
    assert problem.accuracy(W, batch[0], y) == problem.accuracy(W, A, y)


@quick
@given(st.integers(1, 700), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_vertex_is_the_first_largest(d, n_classes, seed):
    """Blocks and what is left of them; ties between blocks and inside."""
    rng = np.random.default_rng(seed)
    g = np.round(rng.standard_normal((d, n_classes)), 1)
    index, value = np.empty((n_classes, 1), np.intp), np.empty((n_classes, 1))
    u, start = (rng.standard_normal(g.shape) for _ in range(2))
    for strength in (0.0, 0.25):  # binary fractions: whatever the order, bits are the same
        u, start = np.round(u, 0), np.round(start, 0)
        direction = np.round(4 * g) / 4
        radii = np.full(n_classes, RADIUS)
        largest = kernels.l1_vertex(direction, 1.0, strength, u, 0.5, start, radii, index, value)
        direction = direction + strength * (0.5 * u - start)
        positions, values = ref.lmo_parts(direction.T, RADIUS)
        assert index[:, 0].tolist() == list(positions)
        assert value[:, 0].tolist() == list(values)
        assert largest == np.abs(direction).max()


@quick
@given(st.integers(1, sized(3000, 90)), st.integers(1, 20), st.integers(0, 2**32 - 1))
@example(9, 13, 30)  # leaders shrink, and there is no room for one more
def test_bounds_lead_to_the_first_largest(n, n_classes, seed):
    """After rows grow, shrink and tie; after the bounds were shrunk or forgotten."""
    rng = np.random.default_rng(seed)
    edges = bounds.levels(n)
    d, tree = np.zeros((n, n_classes)), np.zeros((edges[-1] + 1, n_classes))
    bounds.forget(tree)
    index = np.empty(n_classes, np.intp)
    few = min(n, int(rng.choice([1, 2, rng.integers(3, 70)])))
    leaders = np.zeros((n_classes, bounds.LEADERS * (1 + few)), np.intp)
    slots = np.zeros(n, np.int32)
    digits = int(rng.choice([1, 9]))  # with many ties, and with none but zeros
    for turn in range(sized(40, 12)):
        changed = np.unique(rng.integers(n, size=rng.integers(1, 8)))
        d[changed] += np.round(rng.standard_normal((changed.size, n_classes)), digits)
        d[changed[0]] = 0.0
        if turn % 11 == 5:
            d[:] = np.round(rng.standard_normal(d.shape), digits)
            bounds.forget(tree)
        if turn % 5 == 0:
            keep = float(turn % 2) / 2
            d *= keep
            bounds.shrink(keep, tree)
        starts = np.array([0, changed.size, changed.size])
        bounds.raise_bounds(changed, starts, np.array([1, 0]), d, edges, tree, True, leaders, slots)
        largest = bounds.first_largest(d, edges, tree, index)
        assert index.tolist() == np.abs(d).argmax(axis=0).tolist()
        assert largest == np.abs(d).max()
        assert not slots.any()
        for c in range(n_classes):
            others = np.delete(np.abs(d[:, c]), leaders[c, 1 : 1 + leaders[c, 0]])
            assert (others <= tree[-1, c]).all()
            found = np.empty(few, np.intp)
            top = bounds.first_k_largest(d, edges, tree, leaders, c, found)
            assert found.tolist() == sorted(np.argsort(-np.abs(d[:, c]), kind="stable")[:few])
            assert top == np.abs(d[:, c]).max()


# --- learners -------------------------------------------------------------------------------------


@quick
@given(
    st.sampled_from(list(METHODS)), st.integers(1, 40), st.integers(2, 20),
    st.floats(0.0, 1.0), st.integers(1, 70), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_rounds_follow_the_reference(method, d, n_classes, density, batch_size, seed):
    method = METHODS[method]
    A, y = make_data(seed, 60, d, n_classes, density)
    rounds = 12
    learner = make(method, d=d, n_classes=n_classes)
    stream = fw.iid_stream(A, y, batch_size=batch_size, rounds=rounds, seed=2)
    run = method.reference(
        np.zeros((n_classes, d)), [(b.X, b.y) for b in stream], RADIUS, **method.options
    )
    batches = fw.iid_stream(sparse.csr_array(A), y, batch_size=batch_size, rounds=rounds, seed=2)
    result = learner.run(batches, checkpoints=range(1, rounds + 2))
    assert learner.engine == "fused"
    # Where an entry nearly vanishes or two nearly tie, rounding decides for a vertex.
    off = np.abs(result.decisions - run.iterates).max(axis=(1, 2)) > 1e-11
    if off.any():
        direction = np.abs(run.directions[np.argmax(off) - 1])
        top = -np.sort(-np.column_stack([direction, np.zeros(n_classes)]), axis=1)
        assert (top[:, 0] - top[:, 1]).min() <= 1e-12
        return
    assert np.abs(result.losses - run.losses).max() <= 1e-11
    assert np.abs(result.average - run.iterates[:-1].mean(axis=0)).max() <= 1e-11


@quick
@given(st.integers(1, 300), st.integers(1, 40), st.floats(0.0, 0.2), st.integers(0, 2**32 - 1))
def test_vertices_with_more_entries_are_those_of_dense_features(d, k, density, seed):
    """Ties are those of features that no sample has had."""
    A, y = make_data(seed, 60, d, 2, density)
    problem = fw.SoftmaxRegression(d, 2)
    M = fw.RowKSparsePolytope((2, d), min(k, d), 2.0)
    run = [
        fw.ORGFW(problem, M, step=0.5, momentum=0.5).run(
            fw.iid_stream(X, y, batch_size=4, rounds=12, seed=2)
        )
        for X in (A, sparse.csr_array(A))
    ]
    np.testing.assert_allclose(run[1].losses, run[0].losses, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run[1].decision, run[0].decision, rtol=0, atol=1e-12)


def test_methods_without_kernels_for_sparse_rows_take_steps():
    """From the first batch on that is taken, whose decisions test_contract.py compares."""
    A, y = make_data()
    learner = fw.MORGFW(*problem_and_ball(D), rounds=5, inner_steps=4)
    assert learner.engine == "fused"
    with pytest.raises(ValueError, match="with 3 classes, labels"):  # and does not say it yet
        learner.observe((sparse.csr_array(A[:2]), [0, 7]))
    assert learner.engine == "fused"  # as before
    with pytest.warns(fw.EngineWarning, match="no compiled rounds for sparse rows"):
        learner.run(make_stream(sparse.csr_array(A), y, 5))
    assert learner.engine == "steps"


def test_compiled_rounds_cannot_turn_into_steps():
    A, y = make_data()
    learner = fw.MORGFW(*problem_and_ball(D), rounds=5, inner_steps=4)
    learner.observe((A[:5], y[:5]))
    for play in (
        lambda: learner.observe((sparse.csr_array(A[:5]), y[:5])),
        lambda: learner.run(make_stream(sparse.csr_array(A), y, 2)),
    ):
        with pytest.raises(TypeError, match="for which MORGFW has no compiled rounds"):
            play()
    assert (learner.t, learner.engine) == (2, "fused")


@pytest.mark.parametrize("name", ["OFW", "OAW"])
@pytest.mark.parametrize("model", ["softmax", "network", "random ties"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_past_on_sparse_rows(name, model, dtype, tmp_path):
    """As from oracle calls: rows twice or empty, zeros that are stored, dense rows in between."""
    rng = np.random.default_rng(4)
    A, y = make_data(dtype=dtype)
    A = A * (rng.random(A.shape) < 0.4)
    A[3] = 0.0
    S = sparse.csr_array(A)
    S.data[::7] = 0.0  # stored, and not seen by those who look at A
    A = S.toarray()
    if model == "network":
        problem = fw.OneHiddenLayer(D, 3, C, "tanh")
        M = problem.l1_balls(2.0, 1.0)
    else:
        problem, M = problem_and_ball(D)
        M = M if model == "softmax" else fw.RowL1Ball((C, D), M.radius, "random", seed=3)
    step, method = lambda t: (0.5, 0.95, 0.1, 1.0)[t % 4], getattr(fw, name)
    start = 0.5 * M.lmo(rng.standard_normal(M.shape)).toarray() if model == "softmax" else None
    learner, wanted = (
        method(problem, M, step=step, start=start, dtype=dtype, engine=engine)
        for engine in ("fused", "steps")
    )
    dense, rows = fw.Dataset(A, y), fw.Dataset(S, y)
    for t in range(12):
        numbers = np.append(rng.integers(len(A), size=4), [3, 3])
        given = [fw.Batch(rows, numbers), (S[numbers], y[numbers])]
        if t > 2:
            given.append(fw.Batch(dense, numbers))
        loss = learner.observe(given[t % len(given)]).loss
        other = wanted.observe((A[numbers], y[numbers])).loss
        tolerance = 1e-12 if dtype == np.float64 else 2e-5
        assert abs(loss - other) <= 10 * tolerance
        assert np.abs(learner.play() - wanted.play()).max() <= tolerance
        assert learner.engine == "fused"
        if t % 5 == 4:
            learner.save(tmp_path / "learner")
            twin = method.load(tmp_path / "learner", step=step)
            twin.observe(given[0]), learner.observe(given[0])
            wanted.observe((A[numbers], y[numbers]))
            assert twin.play().tobytes() == learner.play().tobytes()
            learner = twin


PULLED = {"rounds": 40, "scale": 20.0}
#: Methods with their arguments, those that are pulled to a start among them, and models.
TURNS = [
    *itertools.product(
        [
            *((method.learner, method.options) for method in METHODS.values()),
            (fw.RegularizedOFW, {"rounds": 40, "step": 0.95}),
            (fw.RegularizedOFW, {**PULLED, "step": 0.95}),
            (fw.RegularizedOFW, {"rounds": 40, "step": "line-search"}),
            (fw.RegularizedOFW, {**PULLED, "step": "line-search"}),
        ],
        ["softmax", "network", "sets with more entries"],
    ),
    *(((method.learner, method.options), "more than the tail's") for method in METHODS.values()),
    ((fw.OFW, {}), "softmax"),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("method", "model"), TURNS)
def test_dense_and_sparse_batches_in_turn(method, model, dtype):
    """The state goes from one layout to the other, the estimate's scale and a start included."""
    A, y = make_data(dtype=dtype)
    if model in ("softmax", "sets with more entries"):
        problem, M = problem_and_ball(D)
        M = M if model == "softmax" else fw.RowKSparsePolytope((C, D), 3, 2.0)
    else:
        problem = fw.OneHiddenLayer(D, 3, C)
        M = problem.l1_balls(3.0, 2.0)
        if model != "network":
            M = fw.ProductSet({**M.sets, "W1": fw.RowKSparsePolytope((3, D), 3, 3.0)})
    kind, options = method
    start = random_vertex(M, np.random.default_rng(3)) / 2
    wanted, learner, turning = (
        kind(problem, M, start=start, engine=engine, **options)
        for engine in ("steps", "fused", "fused")
    )
    tolerance = 1e-12 if dtype == np.float64 else 2e-5
    turns = (0, 1, 2) if kind is fw.OFW else (4, 5, 6)  # a past is dense or sparse from the first
    for t, batch in enumerate(make_stream(A, y, sized(40, 12))):
        dense, rows = (batch.X, batch.y), (sparse.csr_array(batch.X), batch.y)
        loss = wanted.observe(dense).loss
        for other, form in ((learner, rows), (turning, dense if t % 7 in turns else rows)):
            assert abs(other.observe(form).loss - loss) <= 10 * tolerance
            assert np.abs(other.play() - wanted.play()).max() <= tolerance
            assert np.abs(other.average - wanted.average).max() <= tolerance
            assert other.engine == "fused"


# --- what is measured against ---------------------------------------------------------------------


def test_best_fixed_decision_regret_and_traces():
    A, y = make_data(n=60)
    S = sparse.csr_array(A)
    problem, ball = problem_and_ball(D)
    best, wanted = (fw.best_fixed_decision(problem, ball, X, y) for X in (S, A))
    assert best.value == pytest.approx(wanted.value, rel=1e-6)
    assert best.gap <= 1e-6 * best.value
    stream = make_stream(S, y, 20)
    result = make(METHODS["ORGFW"], d=D).run(stream, checkpoints=[1, 20])
    curve = fw.regret(result, best, stream)
    np.testing.assert_allclose(curve, fw.regret(result, best, list(stream)), rtol=0, atol=1e-12)
    fixed = [ref.loss(best.decision, A[batch.rows], batch.y) for batch in stream]
    np.testing.assert_allclose(curve, np.cumsum(result.losses - fixed), rtol=0, atol=1e-12)
    one, other = (
        fw.trace(result, problem, ball, X, y, X_test=X, y_test=y, gap=True) for X in (S, A)
    )
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-13)
    np.testing.assert_allclose(one.gaps, other.gaps, rtol=1e-9)
    assert one.test_accuracies.tolist() == other.test_accuracies.tolist()
