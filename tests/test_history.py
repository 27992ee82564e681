"""Kernels of the past, each against plain NumPy."""

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from fastfw._csr import csr_features, kernel_features
from fastfw.kernels import history
from sizes import sized

dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def arrays(n, C, d, dtype, seed=0):
    """Features, labels and an iterate u with its scale."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    y = rng.integers(C, size=n)
    for array in (X, y):
        array.flags.writeable = False
    return X, y, rng.standard_normal((C, d)).astype(dtype), 0.625


def read_only(rows):
    rows.flags.writeable = False
    return rows


def laid(layout, X, u):
    """Features, u, and which rows of it are in use, as kernels take them."""
    if layout == "dense":
        return X, u, np.arange(len(u))
    A = kernel_features(csr_features(sparse.csr_array(X)))
    return A, np.ascontiguousarray(u.T), np.arange(u.shape[1])


layouts = pytest.mark.parametrize("layout", ["dense", "csr"])


def close(a, b, dtype, n=1):
    scale = max(1.0, np.abs(b).max())
    return np.abs(a - b).max() <= 30 * n**0.5 * np.finfo(dtype).eps * scale


@layouts
@dtypes
@pytest.mark.parametrize(
    ("n", "C", "d"), [(1, 2, 1), (5, 3, 8), (67, 5, 17), (sized(2500, 1100), 6, 3), (70, 12, 33)]
)
def test_gradients_of_a_batch_and_of_the_past(layout, dtype, n, C, d):
    X, y, u, s = arrays(n, C, d, dtype)
    x = s * u.astype(np.float64)
    rng = np.random.default_rng(1)
    rows = read_only(rng.permutation(n))
    features, u, used = laid(layout, X, u)
    G, partial = rng.standard_normal(u.shape), rng.standard_normal(u.shape).astype(dtype)
    history.clear(G, used)
    history.clear(partial, used)
    logits, tail = np.empty((n, C), dtype), np.empty(0)
    nothing = 1.0, np.zeros(C, np.intp), np.zeros(C)
    loss = history.add_gradient(
        features, None, y, rows, np.full(n, 0.25), True, logits, *nothing, True, u, s, tail,
        partial, G, tail, used,
    )  # fmt: skip
    G = G if layout == "dense" else np.ascontiguousarray(G.T)
    A, eps = X[rows].astype(np.float64), 30 * float(np.finfo(dtype).eps)
    assert loss == pytest.approx(ref.loss(x, A, y[rows], "sum"), rel=eps)
    assert close(logits, A @ x.T, dtype, d)
    wanted = 0.25 * ref.gradient(x, A, y[rows], "sum")
    assert close(G, wanted, dtype, n)
    assert not partial.any()
    # the past comes on top, with a weight for each sample
    weights = rng.random(n)
    wanted = wanted + ref.weighted_gradient(x, A, y[rows], weights[:, np.newaxis])
    for again in (False, True):
        total, kept = (G if layout == "dense" else np.ascontiguousarray(G.T)).copy(), logits.copy()
        if again:
            kept[:] = 7.0
        history.add_gradient(
            features, None, y, rows, weights, False, kept, *nothing, again, u, s, tail, partial,
            total, tail, used,
        )  # fmt: skip
        assert close(total if layout == "dense" else total.T, wanted, dtype, n)
        assert not partial.any()
        assert kept.tobytes() == logits.tobytes()


@dtypes
@pytest.mark.parametrize("seed", range(6))
def test_insert_merges(dtype, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(30)[: rng.integers(1, 20)]
    k = int(rng.integers(0, len(numbers) + 1))
    old, new = np.sort(numbers[:k]), np.sort(numbers[k:])
    room = len(numbers) + int(rng.integers(3))
    at, weights = np.zeros(room, np.intp), np.zeros(room)
    logits = np.zeros((room, 2), dtype)
    at[:k], weights[:k], logits[:k] = old, old / 8, np.outer(old, [1, -1])
    history.insert(k, at, weights, logits, new, new / 8, np.outer(new, [1, -1]).astype(dtype))
    both, m = np.sort(numbers), len(numbers)
    assert at[:m].tolist() == both.tolist()
    assert weights[:m].tolist() == (both / 8).tolist()
    assert logits[:m].tolist() == np.outer(both, [1, -1]).tolist()
    assert not at[m:].any()


def test_slopes_of_vertices():
    rng = np.random.default_rng(0)
    G, radius = rng.standard_normal((3, 5)), 1.5
    codes = np.array([[0, -1, 4], [-5, 2, 2]])
    out = np.empty(2)
    history.slopes(G, codes, radius, out)
    wanted = [
        radius * (G[0, 0] - G[1, 0] + G[2, 4]),
        radius * (-G[0, 4] + G[1, 2] + G[2, 2]),
    ]
    assert np.abs(out - wanted).max() <= 1e-14
    x = rng.standard_normal((3, 5)).astype(np.float32)
    assert history.inner(G, x) == pytest.approx((G * x).sum(), abs=1e-14)


def test_a_vertex_has_the_same_slope_as_a_matrix():
    """To the bit: ties between x_1 and a vertex are ties."""
    G = np.random.default_rng(0).standard_normal((7, 40))
    codes = np.array([[3, -40, 17, 0, -1, 39, 22]])
    x = np.zeros_like(G)
    for c, code in enumerate(codes[0]):
        x[c, max(code, -1 - code)] = 0.1 if code >= 0 else -0.1
    out = np.empty(1)
    history.slopes(G, codes, 0.1, out)
    assert out[0] == history.inner(G, x)
