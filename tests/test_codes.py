"""Features that are bytes: the same numbers as floats, in an eighth of the memory."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import fastfw as fw
from fastfw.kernels import _features

RNG = np.random.default_rng(5)
N, D, C, B, T = 60, 37, 3, 7, 9
BYTES = RNG.integers(0, 256, (N, D)).astype(np.uint8)
Y = RNG.integers(0, C, N)
Y[0] = C - 1
AFFINE = {
    "plain": {},
    "global": {"scale": 1 / 255},
    "rows": {"scale": RNG.uniform(0.001, 0.01, N), "offset": RNG.normal(size=N)},
}
PROBLEM, BALL = fw.SoftmaxRegression(D, C), fw.RowL1Ball((C, D), 2.0)
METHODS = {
    "orgfw": lambda **kw: fw.ORGFW(PROBLEM, BALL, step=fw.power_schedule(1.0, 1.0), **kw),
    "osfw": lambda **kw: fw.OSFW(PROBLEM, BALL, **kw),
    "regularized": lambda **kw: fw.RegularizedOFW(PROBLEM, BALL, rounds=T, **kw),
    "ofw": lambda **kw: fw.OFW(PROBLEM, BALL, **kw),
    "morgfw": lambda **kw: fw.MORGFW(PROBLEM, BALL, rounds=T, sub_batch_size=3, **kw),
}


def floats(kind: str) -> np.ndarray:
    given = AFFINE[kind]
    scale = np.broadcast_to(given.get("scale", 1.0), N)[:, None]
    return scale * BYTES + np.broadcast_to(given.get("offset", 0.0), N)[:, None]


def streams(kind: str) -> tuple:
    coded = fw.Dataset(BYTES, Y, **AFFINE[kind])
    return tuple(
        fw.iid_stream(data, batch_size=B, rounds=T, seed=1)
        for data in (coded, fw.Dataset(floats(kind), Y))
    )


@pytest.mark.parametrize("kind", AFFINE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_decode(kind, dtype):
    data = fw.Dataset(BYTES, Y, **AFFINE[kind]).astype(dtype)
    assert data.dtype == dtype
    assert data.X.dtype == dtype
    assert not data.X.flags.writeable
    # both terms are rounded, and so is their sum; they are at most 255 and 4 in magnitude
    tolerance = 4 * np.finfo(dtype).eps * (255.0 if kind == "plain" else 4.0)
    np.testing.assert_allclose(data.X, floats(kind), rtol=0, atol=tolerance)
    rows = np.array([3, 0, 3, 59])
    np.testing.assert_array_equal(fw.streams.Batch(data, rows).X, data.X[rows])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", AFFINE)
def test_runs_are_those_of_floats(method, kind):
    """Decisions equal those from the decoded features, however the rounds are played."""
    coded, plain = streams(kind)
    wanted = METHODS[method]().run(plain, checkpoints=range(1, T + 2))
    learner = METHODS[method]()
    found = learner.run(coded, checkpoints=range(1, T + 2))
    assert np.abs(found.decisions - wanted.decisions).max() <= 1e-12
    np.testing.assert_allclose(found.losses, wanted.losses, rtol=1e-11)
    looped = METHODS[method]()
    for batch in coded:
        looped.observe(batch)
    np.testing.assert_array_equal(looped.play(), learner.play())
    steps = METHODS[method](engine="steps").run(coded)
    assert np.abs(steps.decision - wanted.decision).max() <= 1e-9


@pytest.mark.parametrize("method", ["orgfw", "osfw", "regularized"])
def test_nothing_is_decoded_as_a_whole(method, monkeypatch):
    """What costs eight times the memory is not made by a run, a loss or a gradient."""
    coded, _ = streams("global")
    monkeypatch.setattr(fw.Dataset, "X", property(lambda self: pytest.fail("decoded")))
    learner = METHODS[method]()
    learner.run(coded)
    PROBLEM.loss(learner.play(), coded.data)
    PROBLEM.gradient(learner.play(), coded.data.astype(np.float32))


def test_losses_and_gradients():
    x = BALL.lmo(RNG.normal(size=(C, D))).toarray()
    coded, plain = fw.Dataset(BYTES, Y, **AFFINE["rows"]), fw.Dataset(floats("rows"), Y)
    np.testing.assert_allclose(PROBLEM.loss(x, coded), PROBLEM.loss(x, plain), rtol=1e-13)
    found, wanted = PROBLEM.gradient(x, coded), PROBLEM.gradient(x, plain)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13)
    best = fw.best_fixed_decision(PROBLEM, BALL, coded.X, Y)
    assert best.gap <= 1e-6 * best.value


def test_memory_stays_bytes():
    data = fw.Dataset(BYTES, Y, scale=1 / 255)
    assert data.codes.values.nbytes == N * D
    assert np.shares_memory(data.codes.values, BYTES)
    assert data.astype(np.float32).codes is data.codes
    assert "uint8" in repr(data)
    again = pickle.loads(pickle.dumps(data.astype(np.float32)))
    assert again.dtype == np.float32
    np.testing.assert_array_equal(again.X, data.astype(np.float32).X)


def test_one_specialisation():
    """Every layout of bytes reaches the kernel in one form."""
    wide = np.zeros((N, 2 * D), np.uint8)
    wide[:, ::2] = BYTES
    forms = [BYTES, np.asfortranarray(BYTES), wide[:, ::2]]
    decided = []
    counts = []
    for X in forms:
        stream = fw.iid_stream(fw.Dataset(X, Y, scale=1 / 255), batch_size=B, rounds=T, seed=1)
        decided.append(METHODS["orgfw"]().run(stream).decision)
        counts.append(len(getattr(_features.decode, "signatures", ())))
    np.testing.assert_array_equal(decided[0], decided[1])
    np.testing.assert_array_equal(decided[0], decided[2])
    assert len(set(counts)) == 1


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"scale": "a"}, TypeError, "scale must be a number"),
        ({"scale": [1.0, 2.0]}, ValueError, r"one for each of the 60 rows.*\(2,\)"),
        ({"scale": np.nan}, ValueError, r"scale must be finite, but scale\[0\] is nan"),
        ({"offset": np.full(N, np.inf)}, ValueError, r"offset\[0\] is inf"),
    ],
)
def test_bad_scales(given, error, message):
    with pytest.raises(error, match=message):
        fw.Dataset(BYTES, Y, **given)


def test_scales_are_for_bytes():
    with pytest.raises(TypeError, match="array of uint8"):
        fw.Dataset(BYTES.astype(float), Y, scale=2.0)
    with pytest.raises(ValueError, match="matrix of shape"):
        fw.Dataset(BYTES[0], Y)
    with pytest.raises(ValueError, match="is empty"):
        fw.Dataset(BYTES[:0], Y)


@pytest.mark.parametrize("name", ["fashion-mnist-4k", "digits"])
def test_data_sets_as_bytes(name):
    whole = fw.datasets.load(name, dtype=np.uint8)
    wanted = fw.datasets.load(name)
    scale = 1 / 16 if name == "digits" else 1 / 255
    assert whole.X.dtype == whole.X_test.dtype == np.uint8
    data = fw.Dataset(whole.X, whole.y, scale=scale)
    # pixels are rounded once as quotients, twice as products
    np.testing.assert_allclose(data.X, wanted.X, rtol=0, atol=2.0**-52)
    np.testing.assert_array_equal(whole.y, wanted.y)


def test_images_scaled_by_themselves(tmp_path):
    pixels = RNG.integers(0, 256, (6, 6, 3072)).astype(np.uint8)
    pixels[0, 0] = 9
    for i, name in enumerate([*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]):
        records = np.concatenate([np.full((6, 1), i, np.uint8), pixels[i]], axis=1)
        records.tofile(tmp_path / name)
    X, y, _, _ = fw.datasets.load("cifar10", root=tmp_path, dtype=np.uint8)
    np.testing.assert_array_equal(X, pixels[:5].reshape(30, 3072))
    scale, offset = fw.datasets.image_scaling(X)
    data = fw.Dataset(X, y, scale=scale, offset=offset)
    wanted = fw.datasets.load("cifar10", root=tmp_path).X
    # the offset is rounded before it is added
    np.testing.assert_allclose(data.X, wanted, rtol=0, atol=2.0**-51)
    assert data.X.min() == 0.0
    with pytest.raises(TypeError, match="array of uint8"):
        fw.datasets.image_scaling(wanted)
    with pytest.raises(ValueError, match="float64 or float32 for a file"):
        fw.datasets.load("some.npz", dtype=np.uint8)
