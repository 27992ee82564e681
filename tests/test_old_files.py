"""Files that earlier versions wrote: they load, and the learners go on as they did then.

    python tests/test_old_files.py FOLDER

writes such files at the commit that is checked out; the archives in tests/data were made of them,
by version 0.1.0 and by a development version that wrote form 2.
"""

import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import fastfw as fw

ARCHIVES = ("learners-0.1.0.zip", "learners-form-2.zip")
N, D, C, HALF, ROUNDS = 12, 5, 3, 6, 14

i, j = np.arange(N)[:, np.newaxis], np.arange(D)
X = ((7 * i + 3 * j * j + i * j) % 11 / 8.0 - 0.5) * ((i + j) % 3 > 0)
y = np.arange(N) ** 2 % C
DATA = {
    "dense": fw.Dataset(X, y),
    "csr": fw.Dataset(sparse.csr_array(X), y),
    "bytes": fw.Dataset((np.abs(X) * 200).astype(np.uint8), y, scale=1 / 128, offset=-0.5),
    "single": fw.Dataset(X.astype("f4"), y),
}
ROWS = (np.arange(4 * ROUNDS).reshape(ROUNDS, 4) * 5) % N


def squares(x, A, b):
    away = A @ x.reshape(-1, D).T - b.reshape(-1, 1)
    return 0.5 * (away**2).mean(), (away.T @ A / away.size).reshape(x.shape)


def batches(layout):
    """Rows of a data set, pairs, or both in turn."""
    data = DATA[layout.split()[0]]
    found = [fw.Batch(data, rows) for rows in ROWS]
    if "pairs" in layout:
        found = [(batch.X, batch.y) for batch in found]
    if "both" in layout:
        found[::3] = [(batch.X, batch.y) for batch in found[::3]]
    return found


def play(learner, layout, first, last):
    """Play rounds first + 1, ..., last."""
    if isinstance(learner, fw.OfflineLearner):
        return learner.fit(*given(learner, layout), iterations=last, resume=first > 0)
    return learner.run(batches(layout)[first:last])


def given(learner, layout):
    data = DATA[layout.split()[0]]
    own = isinstance(learner.problem, fw.SoftmaxRegression | fw.OneHiddenLayer)
    return (data,) if own else (data.X, data.y)


softmax, rows = fw.SoftmaxRegression(D, C), fw.RowL1Ball((C, D), 2.0)
network = fw.OneHiddenLayer(D, 2, C, "tanh", "sum")
balls = network.l1_balls(3.0, 2.0, "random", 1)
own = fw.problem_from_function(squares, (C, D))
flat = fw.problem_from_function(squares, D)
EDGES = [(0, "a"), (0, "b"), ("a", "b"), ("a", 9), ("b", 9)]
META = {"rounds": ROUNDS, "inner_steps": 3}
OFFLINE = {"step": 0.25, "epoch_length": 4, "batch_size": 3, "seed": (1, 2)}

#: Class, problem, set, options, layout of the batches.
LEARNERS = {
    "orgfw": (fw.ORGFW, softmax, rows, {"seed": 3}, "dense"),
    "orgfw-steps": (fw.ORGFW, softmax, rows, {"engine": "steps", "step": 0.5}, "dense pairs"),
    "orgfw-csr": (fw.ORGFW, softmax, rows, {"momentum": fw.power_schedule(1, 2 / 3)}, "csr"),
    "orgfw-single": (fw.ORGFW, softmax, rows, {}, "single"),
    "orgfw-network": (fw.ORGFW, network, balls, {"init": "vertex"}, "dense"),
    "osfw-bytes": (fw.OSFW, softmax, rows, {"threads": 2}, "bytes"),
    "osfw-steps": (fw.OSFW, network, balls, {"engine": "steps"}, "dense"),
    "ofw": (fw.OFW, softmax, rows, {}, "dense"),
    "ofw-both": (fw.OFW, softmax, rows, {}, "dense both"),
    "ofw-steps": (fw.OFW, softmax, rows, {"engine": "steps"}, "dense both"),
    "ofw-network": (fw.OFW, network, balls, {}, "bytes"),
    "oaw": (fw.OAW, softmax, rows, {}, "dense both"),
    "oaw-steps": (fw.OAW, softmax, rows, {"engine": "steps"}, "dense"),
    "oaw-network": (fw.OAW, network, balls, {}, "dense pairs"),
    "regularized": (fw.RegularizedOFW, softmax, rows, {"rounds": 20, "eta": 3.0}, "bytes"),
    "regularized-theory": (fw.RegularizedOFW, network, balls, {}, "dense"),
    "regularized-csr": (fw.RegularizedOFW, softmax, rows, {}, "csr pairs"),
    "morgfw": (fw.MORGFW, softmax, rows, {**META, "base": fw.FTPL(9.0, fresh=False)}, "dense"),
    "morgfw-sub": (fw.MORGFW, softmax, rows, {"inner_steps": 3, "sub_batch_size": 2}, "dense"),
    "morgfw-steps": (fw.MORGFW, network, balls, {**META, "base": fw.OGD(0.25)}, "dense"),
    "morgfw-csr": (fw.MORGFW, softmax, rows, {**META, "sub_batch_size": 3}, "csr"),
    "meta": (fw.MetaFrankWolfe, softmax, rows, META, "bytes"),
    "meta-steps": (fw.MetaFrankWolfe, softmax, rows, {**META, "base": fw.RFTL()}, "dense"),
    "svrf": (fw.SVRF, softmax, rows, OFFLINE, "dense"),
    "svrf-luo": (fw.SVRF, network, balls, {"schedule": "hazan-luo"}, "dense"),
    "svrf-steps": (fw.SVRF, softmax, rows, {**OFFLINE, "engine": "steps"}, "csr"),
    "svrf-csr": (fw.SVRF, softmax, rows, OFFLINE, "csr"),
    "spider": (fw.SpiderFW, softmax, rows, OFFLINE, "dense"),
    "spider-network": (fw.SpiderFW, network, balls, OFFLINE, "dense"),
    "spider-own": (fw.SpiderFW, own, rows, OFFLINE, "dense"),
    "own-l1": (fw.ORGFW, flat, fw.L1Ball(D, 2.0), {}, "dense pairs"),
    "own-simplex": (fw.OAW, flat, fw.Simplex(D, 2.0), {}, "dense pairs"),
    "own-flow": (fw.OAW, flat, fw.FlowPolytope(EDGES, 0, 9), {}, "dense pairs"),
    "own-nuclear": (fw.ORGFW, own, fw.NuclearNormBall((C, D), 2.0), {}, "dense pairs"),
    "own-group": (fw.OSFW, flat, fw.GroupL1Ball([0, 1, 0, 2, 1], 2.0), {}, "dense pairs"),
    "own-box": (fw.OFW, flat, fw.LInfBall(D, 0.5), {}, "dense pairs"),
    "own-sparse": (fw.OSFW, flat, fw.KSparsePolytope(D, 2, 0.5), {}, "dense pairs"),
    "own-l2": (fw.RegularizedOFW, flat, fw.L2Ball(D, 0.5), {"eta": 2.0}, "dense pairs"),
}  # fmt: skip


def half(name):
    """A learner in the middle of its rounds."""
    kind, problem, set, options, layout = LEARNERS[name]
    learner = kind(problem, set, **options)
    play(learner, layout, 0, HALF)
    return learner


@pytest.mark.parametrize("archived", ARCHIVES)
@pytest.mark.parametrize("name", LEARNERS)
def test_learners_of_old_files_go_on(name, archived, tmp_path):
    kind, problem, _, _, layout = LEARNERS[name]
    with zipfile.ZipFile(Path(__file__).with_name("data") / archived) as archive:
        (tmp_path / name).write_bytes(archive.read(name))
        with np.load(io.BytesIO(archive.read("expected.npz"))) as found:
            decision, average = found[name], found[f"{name} average"]
    learner = kind.load(tmp_path / name, problem=problem if "own" in name else None)
    assert learner.t == HALF + 1
    result = play(learner, layout, HALF, ROUNDS)
    tolerance = 1e-5 if decision.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(result.decision, decision, rtol=0, atol=tolerance)
    np.testing.assert_allclose(result.average, average, rtol=0, atol=tolerance)
    assert result.decision.dtype == decision.dtype


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    expected = {}
    for name in LEARNERS:
        learner = half(name)
        learner.save(folder / name)
        result = play(learner, LEARNERS[name][-1], HALF, ROUNDS)
        expected[name], expected[f"{name} average"] = result.decision, result.average
    np.savez(folder / "expected.npz", **expected)
