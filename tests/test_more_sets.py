"""Sets of every family: oracles, vertices, diameters, membership, projections."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import fastfw as fw
from layouts import LAYOUTS
from set_cases import EDGES, POLYTOPES, PROJECTING, SETS, paths
from sizes import quick, sized

EPS = np.finfo(np.float64).eps

polytopes = pytest.mark.parametrize("name", POLYTOPES)
every = pytest.mark.parametrize("name", SETS)


def directions(shape, count, seed=0):
    """Random directions, among them ones with many ties and zeros."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        g = rng.standard_normal(shape) * 10.0 ** rng.uniform(-3, 3)
        yield (
            np.round(g, 1) if i % 3 == 1 else rng.integers(-1, 2, shape) * 1.0 if i % 3 == 2 else g
        )


# --- the oracle -----------------------------------------------------------------------------------


@polytopes
def test_oracle_finds_the_best_of_all_vertices(name):
    own = POLYTOPES[name].make()
    vertices = np.array(list(POLYTOPES[name].vertices(own)))
    flat = vertices.reshape(len(vertices), -1)
    for g in directions(own.shape, 60, seed=1):
        v = np.asarray(own.lmo(g))
        assert (flat == v.ravel()).all(axis=1).sum() == 1, "it is not a vertex"
        rounding = 20 * EPS * np.abs(g).max() * np.abs(v).sum()
        assert (g * v).sum() <= (flat @ g.ravel()).min() + rounding


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (6, 4), (70, 80), (90, 66)])
def test_nuclear_norm_oracle_agrees_with_a_dense_decomposition(shape):
    ball = fw.NuclearNormBall(shape, radius=2.0)
    rng = np.random.default_rng(3)
    full = rng.standard_normal((3, *shape))
    low = rng.standard_normal((3, shape[0], 2)) @ rng.standard_normal((3, 2, shape[1]))
    for g in [*full, *low]:
        v = ball.lmo(g)
        singular = np.linalg.svd(g, compute_uv=False)
        assert abs(v.dot(g) + 2.0 * singular[0]) <= 1e-13 * max(shape) * singular[0]
        for unit in (v.left, v.right):
            assert abs(np.linalg.norm(unit) - 1.0) <= 1e-13
        assert np.array_equal(ball.lmo(g).toarray(), v.toarray()), "not a function of the direction"
        warm = ball.lmo(g + 1e-3 * rng.standard_normal(shape), start=v)
        again = ball.lmo(g, start=warm)
        assert abs(again.dot(g) - v.dot(g)) <= 1e-13 * max(shape) * singular[0]


def blocks(size, seed=4):
    """Of the same largest singular value, in the first rows and columns; and with further ones."""
    rng = np.random.default_rng(seed)
    old, new = np.zeros((100, 90)), np.zeros((100, 90))
    old[:50, :45], new[50:, 45:] = rng.standard_normal((2, 50, 45))
    old, new = (g / np.linalg.norm(g, 2) for g in (old, new))
    return old, old + size * new


def orthogonal(old, new, seed=5):
    """Matrices of singular values ``old`` and ``new`` in the same spaces, none elsewhere."""
    rng = np.random.default_rng(seed)
    u, v = (np.linalg.qr(rng.standard_normal((n, len(old))))[0] for n in (100, 90))
    return (u * old) @ v.T, (u * new) @ v.T


def entries(*places):
    g = np.zeros((100, 90))
    for i, j, value in places:
        g[i, j] = value
    return g


WARM = {  # directions one after the other
    "a larger block": blocks(10.0),
    "a slightly larger block": blocks(1.001),
    "a block alone": (blocks(0.0)[0], blocks(1.0)[1] - blocks(0.0)[0]),
    "a huge block": tuple(1e200 * g for g in blocks(1e6)),
    "a tiny block": tuple(1e-200 * g for g in blocks(2.0)),
    "rank one, orthogonal": orthogonal([1.0, 0.0], [0.0, 1.0]),
    "rank two, growing": orthogonal([1.0, 0.5], [1.0, 1.5]),
    "rank thirty, the last": orthogonal([*range(30, 0, -1)], [*range(30, 1, -1), 100]),
    "one more entry": (entries((0, 0, 1.0)), entries((0, 0, 1.0), (99, 89, -2.0))),
    "a diagonal": (entries((3, 3, 1.0)), entries(*((i, i, 1.0 + i) for i in range(90)))),
    "zero before": (entries(), blocks(3.0)[1]),
    "zero after": (blocks(3.0)[1], entries()),
    "the sign": (blocks(3.0)[1], -blocks(3.0)[1]),
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", [*WARM, "single precision"])
def test_warm_starts_do_not_hide_what_is_orthogonal_to_them(kind, wide):
    old, new = WARM.get(kind, blocks(1.5))
    if kind == "single precision":
        old, new = old.astype(np.float32), new.astype(np.float32)
    if wide:
        old, new = old.T, new.T
    ball = fw.NuclearNormBall(new.shape, radius=5.0)
    least = -5.0 * np.linalg.norm(new, 2)
    product = fw.ProductSet({"a": fw.L1Ball(3, 1.0), "b": ball})
    pad = np.zeros(3, old.dtype)
    before = product.lmo(np.r_[pad, old.ravel()])
    code = ball.lmo(old).code
    starts = [None, *(ball.decode(size * code, "f8") for size in (1.0, 1e30, 0.0))]
    found = [ball.lmo(new, start) for start in starts]
    found.append(product.lmo(np.r_[pad, new.ravel()], before))
    for v, g in zip(found, [*[new] * 4, np.r_[pad, new.ravel()]], strict=True):
        assert abs(v.dot(g) - least) <= 1e-12 * abs(least)


def test_nuclear_norm_oracle_without_convergence(monkeypatch):
    """Where the iterative decomposition gives up, a dense one answers."""
    import scipy.sparse.linalg as linalg

    def fails(*args, **kwargs):
        raise linalg.ArpackNoConvergence("none", np.empty(0), np.empty((0, 0)))

    ball = SETS["NuclearNormBall, large"]()
    g = np.random.default_rng(0).standard_normal(ball.shape)
    wanted = ball.lmo(g).dot(g)
    monkeypatch.setattr(linalg, "svds", fails)
    assert ball.lmo(g).dot(g) == pytest.approx(wanted, rel=1e-12)


@every
def test_ties_and_zero(name):
    """Zero has a vertex too; it is the same for every zero and every equal direction."""
    own = SETS[name]()
    zero = own.lmo(np.zeros(own.shape)).toarray()
    assert own.contains(zero)
    assert np.array_equal(own.lmo(-np.zeros(own.shape)).toarray(), zero)
    if name in POLYTOPES:
        vertices = POLYTOPES[name].vertices(own)
        assert any(np.array_equal(zero, v) for v in vertices)
    else:
        assert np.abs(zero).max() > 0.0


def test_lowest_index_wins_ties():
    assert fw.Simplex(4).lmo([1.0, 0.0, 0.0, 0.0]).index == 1
    box = fw.LInfBall(3, radius=1.0)
    assert box.lmo([0.0, -0.0, -1.0]).toarray().tolist() == [-1.0, -1.0, 1.0]
    sparse = fw.KSparsePolytope(5, k=2, radius=1.0)
    assert sparse.lmo([1.0, -1.0, 1.0, 1.0, 0.5]).toarray().tolist() == [-1.0, 1.0, 0, 0, 0]
    assert sparse.lmo([0.5, 1.0, -2.0, 1.0, 1.0]).indices.tolist() == [1, 2]
    rows = fw.RowKSparsePolytope((2, 3), k=2, radius=6.0)
    assert rows.lmo([[1.0, 2.0, -1.0], [0.0] * 3]).toarray().tolist() == [[-3, -3, 0], [-3, -3, 0]]
    assert fw.GroupL1Ball([1, 0, 0], 5.0).lmo([5.0, 3.0, 4.0]).toarray().tolist() == [0, -3.0, -4.0]
    assert fw.GroupL1Ball([1, 0, 0], 5.0).lmo(np.zeros(3)).toarray().tolist() == [0, -5.0, 0]
    assert fw.BirkhoffPolytope(3).lmo(np.zeros((3, 3))).columns.tolist() == [0, 1, 2]
    flows = fw.FlowPolytope(EDGES, 0, 5)
    assert flows.lmo(np.zeros(len(EDGES))).indices.tolist() == [0, 2, 4, 7, 9]


def spoilt(value):
    """Ones of a shape, the last of them another number."""

    def make(shape):
        a = np.ones(shape)
        a.flat[-1] = value
        return a

    return make


REFUSED = {
    "NaN": (spoilt(np.nan), ValueError, r"\[.*\] is nan"),
    "infinity": (spoilt(np.inf), ValueError, r"\[.*\] is inf"),
    "minus infinity": (spoilt(-np.inf), ValueError, r"\[.*\] is -inf"),
    "beyond float64": (lambda shape: np.full(shape, "1e400", np.longdouble), ValueError, "is inf"),
    "complex": (lambda shape: np.ones(shape, complex), TypeError, "real numbers.*complex128"),
    "strings": (lambda shape: np.full(shape, "1.0"), TypeError, "real numbers.*<U3"),
    "objects": (lambda shape: np.full(shape, None), TypeError, "real numbers.*object"),
    "dates": (lambda shape: np.zeros(shape, "M8[s]"), TypeError, "real numbers.*datetime64"),
    "masked": (lambda shape: np.ma.masked_all(shape), TypeError, "masked array"),
    "sparse": (lambda shape: sparse.csr_array(np.ones((2, 3))), TypeError, "sparse.*toarray"),
    "one axis more": (lambda shape: np.ones((*shape, 2)), ValueError, r"must have shape \("),
    "flat": (lambda shape: np.ones(999), ValueError, r"must have shape \(.*\(999,\)"),
    "ragged": (lambda shape: [[1.0], [1.0, 2.0]], ValueError, "cannot be read as a NumPy array"),
    "a number": (lambda shape: 1.0, ValueError, r"must have shape \(.*\(\)"),
    "None": (lambda shape: None, TypeError, "real numbers"),
}


@every
def test_what_is_no_point_is_refused(name):
    """By the oracle and the projection alike, which name the argument; and no set contains it."""
    own = SETS[name]()
    for case, (make, kind, message) in REFUSED.items():
        if case == "beyond float64" and np.finfo(np.longdouble).max == np.finfo(np.float64).max:
            continue  # long double is double here
        bad = make(own.shape)
        with pytest.raises(kind, match=f"direction.*{message}"):
            own.lmo(bad)
        if name in PROJECTING:
            with pytest.raises(kind, match=f"x.*{message}"):
                own.project(bad)
        assert own.contains(bad) is False


@every
def test_any_layout(name):
    own = SETS[name]()
    g = np.random.default_rng(0).standard_normal(own.shape)
    for layout in LAYOUTS.values():
        assert np.array_equal(own.lmo(layout(g)).toarray(), own.lmo(g).toarray())
    assert own.lmo(g.astype(np.float32)).dtype == np.float32


@every
def test_directions_of_any_size(name):
    """The vertex does not depend on the direction's size, up to rounding of the direction."""
    own = SETS[name]()
    g = np.random.default_rng(4).uniform(-1, 1, own.shape)
    v = own.lmo(g).toarray()
    # ARPACK's rounding is that of the vectors it meets
    tolerance = (1e-12 if "Nuclear" in name else 8 * EPS) * np.abs(v).max()
    for size in (1e-300, 1e-160, 1e160, 1.7e308):
        assert np.abs(v - own.lmo(g * size).toarray()).max() <= tolerance


# --- vertices -------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_vertex_does_what_its_dense_array_does(name, dtype):
    own = SETS[name]()
    rng = np.random.default_rng(5)
    x, g = rng.standard_normal((2, *own.shape)).astype(dtype)
    eps = np.finfo(dtype).eps
    v = own.lmo(g)
    dense = v.toarray()
    assert dense.dtype == v.dtype == np.asarray(v).dtype == dtype
    assert dense.shape == v.shape == own.shape
    assert v.ndim == dense.ndim
    for found, wanted in (
        (v - x, dense - x), (x - v, x - dense), (v - v, 0.0 * dense), (x + v, x + dense),
        (v + x, x + dense), (0.5 * v, 0.5 * dense), (v * 0.5, 0.5 * dense),
        (np.float64(0.5) * v, np.float64(0.5) * dense), (x + 0.5 * (v - x), x + 0.5 * (dense - x)),
        (np.asarray(v, np.float32), dense.astype(np.float32)),
    ):  # fmt: skip
        assert type(found) is np.ndarray
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted)
    kept = dense.copy()
    dense[...] = 99.0  # it is a copy
    assert np.array_equal(v.toarray(), kept)
    dense = kept
    exact = float(np.vdot(g.astype(float), dense.astype(float)))
    assert abs(v.dot(g) - exact) <= 8 * eps * np.abs(g.astype(float) * dense).sum()
    size = np.abs(x).max() + np.abs(dense).max()
    for eta in (0.0, 0.3, 1.0, -0.25):
        before = x.copy()
        moved = v.step(x, eta)
        assert np.array_equal(x, before)
        assert moved.dtype == dtype
        assert np.abs(moved - ((1 - eta) * x + eta * dense)).max() <= 4 * eps * size
    if "Nuclear" not in name:  # whose entries are products
        assert np.array_equal(v.step(x, 1.0), dense)
    added = x.copy()
    v.add_to(added, -2.0)
    assert np.abs(added - (x - 2.0 * dense)).max() <= 4 * eps * 3 * size
    assert type(v).__name__ in repr(v)
    assert np.vdot(g, v) == np.vdot(g, dense)
    with pytest.raises(ValueError, match="only by a copy"):
        np.asarray(v, copy=False)


@every
def test_codes_lead_back_to_the_vertex(name):
    own = SETS[name]()
    seen = {}
    forms = set()
    for g in directions(own.shape, 25, seed=6):
        v = own.lmo(g)
        code = v.code
        assert code.ndim == 1
        forms.add((code.dtype, code.shape))
        for dtype in (np.float64, np.float32):
            back = own.decode(np.frombuffer(code.tobytes(), code.dtype), dtype)
            assert back.dtype == dtype
            assert np.array_equal(back.toarray(), v.toarray().astype(dtype))
        assert back.code.tobytes() == code.tobytes() or back.code.dtype.kind == "f"
        assert seen.setdefault(code.tobytes(), v.toarray().tobytes()) == v.toarray().tobytes()
    assert len(forms) == 1


# --- membership, start, diameter ------------------------------------------------------------------


@every
def test_vertices_and_their_mixtures_lie_inside_and_steps_stay_there(name):
    own = SETS[name]()
    rng = np.random.default_rng(7)
    x = own.start()
    assert x.shape == own.shape
    assert own.start(np.float32).dtype == np.float32
    assert own.contains(x)
    for t in range(sized(200, 50)):
        v = own.lmo(rng.standard_normal(own.shape))
        assert own.contains(v.toarray(), tol=1e-14)
        x = v.step(x, 1.0 / (t + 1))
    assert own.contains(x, tol=1e-12)
    if hasattr(own, "random_point"):
        assert own.contains(own.random_point(rng), tol=1e-12)


@every
def test_outside_is_outside(name):
    """Beyond a vertex, seen from inside, nothing belongs to the set; a tolerance reaches out."""
    own = SETS[name]()
    inside = np.mean([own.lmo(g).toarray() for g in directions(own.shape, 10, seed=8)], axis=0)
    for g in directions(own.shape, 10, seed=9):
        v = own.lmo(g).toarray()
        out = v + 0.01 * (v - inside)
        assert not own.contains(out, tol=1e-4)
        assert own.contains(out, tol=1.0)


@polytopes
def test_diameter_is_the_largest_distance_of_two_vertices(name):
    own = POLYTOPES[name].make()
    vertices = [v.ravel() for v in POLYTOPES[name].vertices(own)]
    widest = max(np.linalg.norm(a - b) for a, b in itertools.product(vertices, vertices))
    assert own.diameter == pytest.approx(widest, rel=4 * EPS)


# --- projections ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROJECTING)
@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_projection_is_nearest(name, size):
    """P is nearest to x if <x - p, z - p> <= 0 for all z of the set; the oracle finds the worst."""
    own = SETS[name]()
    rng = np.random.default_rng(11)
    for _ in range(6):
        x = size * rng.standard_normal(own.shape)
        before = x.copy()
        p = own.project(x)
        assert np.array_equal(x, before)
        assert not np.shares_memory(x, p)
        assert own.contains(p, tol=1e-13)
        worst = own.lmo(p - x)
        assert worst.dot(p - x) >= np.vdot(p - x, p) - 1e-12 * (1 + np.abs(x).max()) ** 2 * x.size
        assert np.abs(own.project(p) - p).max() <= 1e-13 * own.diameter
        single = own.project(x.astype(np.float32))
        assert single.dtype == np.float32
        assert np.abs(single - p).max() <= 1e-5 * (np.abs(x).max() + own.diameter)


@pytest.mark.parametrize("name", PROJECTING)
@pytest.mark.parametrize("size", [1e17, 1e300])
def test_projections_of_very_large_points(name, size):
    """Where all entries are large the set's own numbers are not lost in them."""
    own = SETS[name]()
    x = np.zeros(own.shape)
    x.flat[0] = size
    p = own.project(x)
    assert own.contains(p, tol=1e-13)
    # all that counts is the first entry, which becomes as large as it can
    assert p.flat[0] == pytest.approx(own.lmo(-x).toarray().flat[0], rel=1e-12)
    x = np.full(own.shape, size)
    p = own.project(x)
    assert own.contains(p, tol=1e-13)
    # by symmetry all entries, or all of a group or row, are equal
    if name != "GroupL1Ball":
        assert np.ptp(p) <= 1e-12 * own.diameter
    assert p.sum() == pytest.approx(own.lmo(-x).toarray().sum(), rel=1e-9)


# --- flows ----------------------------------------------------------------------------------------


@st.composite
def graphs(draw):
    """Graphs without cycles on nodes 0, ..., n - 1, with shuffled names and edges."""
    n = draw(st.integers(2, 6))
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=12))
    names = draw(st.permutations(range(n)))
    edges = [(f"u{names[a]}", f"u{names[b]}") for a, b in edges]
    return edges, f"u{names[0]}", f"u{names[n - 1]}"


@quick
@given(graphs(), st.randoms(use_true_random=False))
def test_flows_through_any_graph(graph, random):
    edges, source, sink = graph
    routes = list(paths(edges, source, sink))
    if not routes:
        with pytest.raises(ValueError, match=r"no path leads|must be a node"):
            fw.FlowPolytope(edges, source, sink)
        return
    own = fw.FlowPolytope(edges, source, sink)
    cost = np.array([random.choice([-2.0, -1.0, 0.0, 1.0, 2.5]) for _ in edges])
    v = own.lmo(cost)
    assert v.indices.tolist() in routes
    assert v.dot(cost) == min(cost[route].sum() for route in routes)
    # the first edge out of every node of the path that begins a best way on
    for i, e in enumerate(v.indices):
        rest = cost[v.indices[i:]].sum()
        ways = [r for r in paths(edges, edges[e][0], sink) if cost[r].sum() == rest]
        assert e == min(r[0] for r in ways)
    assert own.contains(own.start(), tol=1e-12)
    assert own.route(v) == [source, *(edges[e][1] for e in v.indices)]
    widest = max(len({*a} ^ {*b}) for a, b in itertools.product(routes, routes))
    assert own.diameter == math.sqrt(widest)


def test_cycles_are_refused():
    with pytest.raises(ValueError, match="edges must not form a cycle, but edge 'b' -> 'a'"):
        fw.FlowPolytope([("s", "t"), ("b", "a"), ("a", "b")], "s", "t")
    with pytest.raises(ValueError, match="cycle"):
        fw.FlowPolytope([("s", "t"), ("a", "a")], "s", "t")


# --- construction ---------------------------------------------------------------------------------

#: What no set takes for an argument of this name.
BAD = {
    "shape": [(), (2, 0), (2, -1), (2, 2.5), 2.5, "ab"],
    "size": [0, -1, 2.5, "ab"],
    "k": [0, 10**6, 1.5],
    "radius": [0.0, -1.0, 1e-310, np.nan, np.inf, "ab"],
}


@every
def test_arguments_that_no_set_takes(name):
    given = SETS[name]()._parameters()
    for argument, bad in [(key, bad) for key in BAD if key in given for bad in BAD[key]]:
        with pytest.raises((TypeError, ValueError), match=argument):
            type(SETS[name]())(**{**given, argument: bad})


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: fw.Simplex(1), ValueError, "size must be an integer >= 2"),
        (lambda: fw.Simplex(3, 0.0), ValueError, "radius must be a positive number"),
        (lambda: fw.Simplex(3, 1e-310), ValueError, "radius must be at least"),
        (lambda: fw.LInfBall((), 1.0), ValueError, "shape is empty"),
        (lambda: fw.L2Ball(2.5, 1.0), TypeError, "shape must be an integer or a tuple"),
        (lambda: fw.GroupL1Ball([], 1.0), ValueError, "groups must name the group of every entry"),
        (lambda: fw.GroupL1Ball([0.0, np.nan], 1.0), ValueError, "groups holds NaN"),
        (lambda: fw.KSparsePolytope(3, 4), ValueError, "at most the number of entries, 3"),
        (lambda: fw.RowKSparsePolytope((2, 3), 4, 1.0), ValueError, "the number of columns, 3"),
        (lambda: fw.RowKSparsePolytope(3, 1, 1.0), ValueError, r"a pair \(n_classes, n_feat"),
        (lambda: fw.NuclearNormBall(3, 1.0), ValueError, r"shape must be a pair \(m, n\)"),
        (lambda: fw.NuclearNormBall((3, 2), 1.0, seed=-1), ValueError, "seed"),
        (lambda: fw.BirkhoffPolytope(1), ValueError, "size must be an integer >= 2"),
        (lambda: fw.FlowPolytope([], 0, 1), ValueError, "edges is empty"),
        (lambda: fw.FlowPolytope(3, 0, 1), TypeError, "edges must be a sequence of pairs"),
        (lambda: fw.FlowPolytope([(0, 1, 2)], 0, 1), ValueError, r"edges\[0\] must be a pair"),
        (lambda: fw.FlowPolytope(["ab"], "a", "b"), ValueError, r"edges\[0\] must be a pair"),
        (lambda: fw.FlowPolytope([(0, 1)], 0, 7), ValueError, "sink must be a node of an edge"),
        (lambda: fw.FlowPolytope([(0, 1)], 1, 1), ValueError, "must be two nodes"),
        (lambda: fw.FlowPolytope([(0, 1)], 1, 0), ValueError, "no path leads from source 1"),
    ],
)
def test_bad_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@every
def test_equality_and_repr(name):
    one, other = SETS[name](), SETS[name]()
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)
    assert one != "set"
    assert type(one).__name__ in repr(one)
    different = [made() for key, made in SETS.items() if key != name]
    assert all(one != s for s in different)
    assert fw.FlowPolytope(np.array([[0, 1]]), 0, 1) == fw.FlowPolytope([(0, 1)], 0, 1)
    assert fw.Simplex(3) != fw.Simplex(3, 2.0)
