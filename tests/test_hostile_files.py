"""Files of learners that lie about sizes, counts and values: refused before they cost anything."""

import functools
import io
import json
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cells import Cell
from learner_cases import one_line, read, write
from set_cases import SETS
from sizes import memory_below

#: One of each engine that has a state of its own, with what belongs to its file.
MAKERS = {
    "ORGFW": Cell("ORGFW", "softmax", "dense", "float64", "fused"),
    "ORGFW csr": Cell("ORGFW", "softmax", "csr", "float64", "fused"),
    "ORGFW steps": Cell("ORGFW", "softmax", "dense", "float64", "steps"),
    "OSFW network": Cell("OSFW", "network", "dense", "float32", "fused"),
    "OFW pairs": Cell("OFW", "softmax", "pairs", "float64", "fused"),
    "OFW csr": Cell("OFW", "softmax", "csr", "float64", "fused"),
    "OFW steps": Cell("OFW", "softmax", "csr", "float64", "steps"),
    "OFW past": Cell("OFW", "softmax", "pairs", "float64", "steps"),
    "OAW": Cell("OAW", "network", "dense", "float64", "fused"),
    "RegularizedOFW steps": Cell("RegularizedOFW", "softmax", "dense", "float64", "steps"),
    "MORGFW": Cell("MORGFW", "softmax", "dense", "float64", "fused"),
    "MetaFrankWolfe steps": Cell("MetaFrankWolfe", "network", "dense", "float64", "fused"),
    "SVRF": Cell("SVRF", "softmax", "dense", "float64", "fused"),
    "SVRF steps": Cell("SVRF", "softmax", "dense", "float64", "steps"),
    "SpiderFW network": Cell("SPIDER-FW", "network", "dense", "float64", "fused"),
}
HUGE = 2**62


@functools.cache
def content(cell):
    """Return the file of a learner in the middle of its rounds."""
    learner = cell.learner()
    cell.play(learner, 0, 3)
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder) / "learner")
        return (Path(folder) / "learner").read_bytes()


def half(cell, path):
    """Write such a file; return what it holds."""
    path.write_bytes(content(cell))
    return read(path)


def refused(cell, path, peak=2e6):
    """Return the one line with which a file is refused, without much memory."""
    with memory_below(peak):
        return one_line(path, cell.kind)


@pytest.mark.parametrize("cell", MAKERS.values(), ids=MAKERS)
def test_states_that_lie(cell, tmp_path):
    """Every array in turn: absent, of another form or dtype, not finite, enormous, negative."""
    path = tmp_path / "learner.npz"
    header, arrays = half(cell, path)
    cell.kind.load(path)
    for name in (name for name in arrays if name.startswith("state.")):
        array = arrays[name]
        changes = [None, array[np.newaxis], array.astype("U8"), array.astype(complex)]
        if array.size:
            changes.append(array.reshape(-1)[:-1].copy())
        if array.dtype.kind == "f":
            changes += [np.full_like(array, value) for value in (np.nan, np.inf)]
        if array.dtype.kind == "i":
            limits = np.iinfo(array.dtype)
            changes += [np.full_like(array, value) for value in (limits.max, limits.min // 2)]
        for change in changes:
            changed = {**arrays, name: change}
            write(path, header, {k: v for k, v in changed.items() if v is not None})
            if change is not None and array.size == 0 and change.size == 0 and change.ndim == 1:
                continue
            if change is not None and (change.shape, change.dtype) == ((0, 0), array.dtype):
                continue  # nothing has changed
            if array.dtype.kind == "i" and change is changes[-2]:  # enormous
                refused(cell, path)
            else:
                one_line(path, cell.kind)
    write(path, header, {**arrays, "state.more": np.zeros(3)})
    one_line(path, cell.kind)
    for name in ("sum", "total"):
        if f"state.{name}" in arrays:
            for value in (1e300, -1e30, 1e6):
                with np.errstate(over="ignore"):
                    total = np.full_like(arrays[f"state.{name}"], value)
                write(path, header, {**arrays, f"state.{name}": total})
                refused(cell, path)


def put(*where_and_value):
    """Replace items of an array: places and values in turns."""

    def change(array):
        array = array.copy()
        for where, value in zip(where_and_value[::2], where_and_value[1::2], strict=True):
            array[where] = value
        return array

    return change


def full(value):
    return lambda array: np.full_like(array, value)


PAST = [
    *(("labels", put(0, value)) for value in (3, -1)),
    ("numbers", put(0, 23)), ("numbers", put(-1, 24)), ("numbers", put(0, -1)),
    *(("sources", put((0, k), value)) for k, value in ((2, 10**6), (1, 3), (2, -1))),
    ("samples", lambda a: a[1:]), ("samples", lambda a: a[::-1]), ("scalars", put(0, 0.0)),
]  # fmt: skip
ACTIVE = [
    ("vertices", lambda a: np.concatenate([a[:1], a[:1], a[2:]])), ("vertices", lambda a: a[1:]),
    ("vertices", full(5)), ("vertices", full(-6)), ("weights", lambda a: -a),
    ("weights", lambda a: a * 0.5), ("weights", lambda a: a[1:]),
    ("start_weight", lambda a: a - 2.0), ("steps", lambda a: a - 100),
]  # fmt: skip
#: What no round leaves: numbers out of range, parts that do not fit together.
DAMAGED = [
    (MAKERS["ORGFW"], [
        ("index", put(1, 5)), ("index", put(0, 2**40)), ("index", put(2, -1)),
        ("u", lambda a: a[:, :-1]), ("u", put((1, 2), 1e3)), ("value", put(0, 1e9)),
        *(("scalars", put(0, value)) for value in (0.0, 1e-320, 2.0)),
        ("scalars", put(1, np.nan)), ("scalars", put(2, 1.5)), ("scalars", put(3, 0.5)),
        ("scalars", put(3, 2.0)),
    ]),
    (MAKERS["OSFW network"], [("index", lambda a: a + 5), ("tail", lambda a: a * 100)]),
    (Cell("OFW", "softmax", "dense", "float64", "fused"), PAST),
    (MAKERS["OFW past"], [
        ("past.0.0", lambda a: a[3:]), ("past.0.1", lambda a: a[3:]),
        ("past.0.ends", put(0, 10**6)), ("past.samples", lambda a: a[1:]),
        ("past.0.0", lambda a: a[:, :-1].copy()),
    ]),
    (Cell("OAW", "softmax", "dense", "float64", "fused"), [*PAST, *ACTIVE]),
    (Cell("OAW", "softmax", "dense", "float64", "steps"), ACTIVE),
    (Cell("RegularizedOFW", "softmax", "dense", "float64", "fused"), [
        ("constant", full(0.0)), ("constant", full(-1.0)), ("scalars", full(7.0)),
    ]),
    (MAKERS["MORGFW"], [
        ("index", full(99)), ("value", full(7.0)), ("bound", full(np.nan)), ("sums", full(np.inf)),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("cell", "changes"), DAMAGED, ids=[str(cell) for cell, _ in DAMAGED])
def test_states_that_no_round_leaves(cell, changes, tmp_path):
    path = tmp_path / "learner.npz"
    header, arrays = half(cell, path)
    write(path, header, arrays)
    cell.kind.load(path)
    for name, change in changes:
        write(path, header, {**arrays, f"state.{name}": change(arrays[f"state.{name}"])})
        one_line(path, cell.kind)
    rest = {name: array for name, array in arrays.items() if name != "start"}
    for other in ({"start": full(9.0)(arrays["start"])}, {}, {**arrays, "more": np.ones(3)}):
        write(path, header, {**rest, **other})
        one_line(path, cell.kind)


COUNTS = (10**30, HUGE, 10**9, 0, -1, 2.5, "9", [9], True)


@pytest.mark.parametrize("count", COUNTS, ids=str)
def test_counts_that_lie(count, tmp_path):
    """Of rounds, base learners, samples: refused, or of no consequence."""
    path = tmp_path / "learner.npz"
    for name in ("MORGFW", "MetaFrankWolfe steps"):
        header, arrays = half(MAKERS[name], path)
        options = {**header["options"], "inner_steps": count}
        write(path, {**header, "options": options}, arrays)
        refused(MAKERS[name], path)
        options = {**header["options"], "inner_steps": None, "rounds": count}
        write(path, {**header, "options": options}, arrays)
        refused(MAKERS[name], path)
    for name, cell in MAKERS.items():
        header, arrays = half(cell, path)
        if count != 10**9 or "OFW" in name.split():
            write(path, {**header, "t": count}, arrays)
            refused(cell, path)
        if cell.offline and isinstance(count, int) and not 0 < count < 2**53:
            if abs(count) <= HUGE:
                write(path, header, {**arrays, "state.samples": np.array(count)})
                refused(cell, path)
            for option in ("epoch_length", "batch_size"):
                if count == HUGE:
                    continue
                write(path, {**header, "options": {**header["options"], option: count}}, arrays)
                refused(cell, path)


def lies(own):
    """What a file may say of a set, each of its sizes in turn being enormous."""
    plain = {"name": type(own).__name__, **own._parameters()}
    yield from ({**plain, key: 10**12} for key in ("size", "k") if key in plain)
    shape = plain.get("shape", ())
    for i in range(len(shape)):
        yield {**plain, "shape": [*shape[:i], 10**12, *shape[i + 1 :]]}


LYING = [
    {"name": "RowL1Ball", "shape": [10**9, 10**9], "radius": 2.0},
    {"name": "RowL1Ball", "shape": [10**30, 5], "radius": 2.0},
    {"name": "BirkhoffPolytope", "size": 10**6},
    {"name": "BirkhoffPolytope", "n": 10**6},
    {"name": "ProductSet", "blocks": [["a", {"name": "L1Ball", "size": 10**12, "radius": 1.0}]]},
    {"name": "ProductSet", "blocks": []},
    {"name": "ProductSet", "blocks": [[["a"], {"name": "L1Ball", "size": 3, "radius": 1.0}]]},
    {"name": "__class__"},
    {"name": ["RowL1Ball"], "shape": [3, 5], "radius": 2.0},
    *(lie for make in SETS.values() for lie in lies(make())),
]


@pytest.mark.parametrize("described", LYING, ids=str)
def test_sets_and_problems_that_lie(described, tmp_path):
    path, cell = tmp_path / "learner.npz", MAKERS["ORGFW"]
    header, arrays = half(cell, path)
    write(path, {**header, "set": described}, arrays)
    refused(cell, path)
    shape = described.get("shape", [3, described.get("size", described.get("n", 10**12))])
    if isinstance(shape, list):
        problem = {**header["problem"], "n_classes": shape[0], "n_features": shape[1]}
        write(path, {**header, "set": described, "problem": problem}, arrays)
        refused(cell, path)


def rewritten(path, change, **options):
    """Write the archive once more, each member's bytes as `change` makes them."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in change(members):
            archive.writestr(name, content)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def bomb(name):
    """One member more, of zeros."""
    zeros = npy(np.zeros(4_000_000, np.uint8))
    return lambda members: [*members.items(), (f"{name}.npy", zeros)]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("more", zipfile.ZIP_DEFLATED),
        ("header", zipfile.ZIP_DEFLATED),
        ("state.sum", zipfile.ZIP_BZIP2),
        ("state.u", zipfile.ZIP_LZMA),
    ],
)
def test_archives_that_inflate(name, method, tmp_path):
    """A small file, which would need a hundred times as much memory."""
    path, cell = tmp_path / "learner.npz", MAKERS["ORGFW"]
    half(cell, path)

    def change(members):
        return {**members, **dict(bomb(name)(members))}.items()

    rewritten(path, change, compression=method)
    assert path.stat().st_size < 50_000
    assert "compressed" in refused(cell, path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_whose_directory_lies(tmp_path):
    path, cell = tmp_path / "learner.npz", MAKERS["ORGFW"]
    half(cell, path)
    whole = path.read_bytes()
    rewritten(path, lambda members: [*members.items(), ("header.npy", members["header.npy"])])
    assert "twice" in refused(cell, path)
    path.write_bytes(whole)
    rewritten(path, lambda members: [*members.items(), *(("state.u.npy", b""),) * 3])
    refused(cell, path)
    path.write_bytes(whole)
    rewritten(path, lambda members: [*members.items(), ("state.u", members["state.u.npy"])])
    assert "twice" in refused(cell, path)
    # many entries for the same bytes
    path.write_bytes(whole)
    with zipfile.ZipFile(path, "a") as archive:
        for k in range(2000):
            again = zipfile.ZipInfo(f"state.{k}.npy")
            first = archive.getinfo("state.u.npy")
            again.header_offset, again.CRC = first.header_offset, first.CRC
            again.file_size = again.compress_size = first.file_size
            archive.filelist.append(again)
        archive._didModify = True
    refused(cell, path)
    # arrays that say they are larger than they are, and the other way round
    for shape in ("(3, 1000000000000)", "(1000000000000, 5)", "(0, 5)", "(-3, 5)", "(3,)"):
        path.write_bytes(whole)

        def change(members, shape=shape):
            text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
            head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + f"{text:117}\n".encode()
            content = members["state.u.npy"]
            return {**members, "state.u.npy": head + content[128:]}.items()

        rewritten(path, change)
        refused(cell, path)


PARTS = ("fastfw learner", "method", "t", "dtype", "engine", "seed", "problem", "set",
         "schedules", "options")  # fmt: skip
LARGE_SEEDS = [{"seed": 10**4000}, {"seed": [3] * 100_000}]
#: Other headers altogether, what lacks a part (...), and other values.
HEADERS = [
    *(b"", b"{", b"[]", b"null", b"3", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"t": 1}'),
    *({name: ...} for name in PARTS),
    {"fastfw learner": 4},
    {"fastfw learner": None},
    {"method": "OSFW"},
    {"method": "object"},
    {"method": None},
    {"t": 0},
    {"t": -3},
    {"t": 2.5},
    {"t": "3"},
    {"t": True},
    {"t": None},
    {"t": 10**30},
    {"t": 1},
    {"dtype": "int8"},
    {"dtype": "object"},
    {"dtype": "float32"},
    {"dtype": None},
    {"engine": "steps"},
    {"engine": "turbo"},
    {"engine": ["fused"]},
    {"seed": 1.5},
    {"seed": [-1]},
    {"seed": {}},
    {"problem": {"name": "SoftmaxRegression", "n_features": 7, "n_classes": 3}},
    {"problem": {"name": "os.system", "command": "true"}},
    {"problem": {"name": "SoftmaxRegression", "n_features": 5, "n_classes": 3, "x": 1}},
    {"problem": []},
    {"problem": "SoftmaxRegression"},
    {"set": {"name": "RowL1Ball", "shape": [3, 5], "radius": -2.0}},
    {"set": {"name": "RowL1Ball", "shape": [3, 5], "radius": "2"}},
    {"set": {"name": "L2Ball"}},
    {"set": 3},
    {"schedules": {"step": {"c": -1.0, "e": 1.0}, "momentum": {"value": 0.5}}},
    {"schedules": {"step": "import os", "momentum": {"value": 0.5}}},
    {"schedules": {"speed": {"value": 0.5}}},
    {"schedules": {"start": {"value": 0.5}}},
    {"schedules": []},
    {"options": {"start": None}},
    {"options": {"command": "true"}},
    {"options": None},
    *LARGE_SEEDS,
    {"problem": {"name": "SoftmaxRegression", "n_features": 10**30, "n_classes": 3}},
    {"schedules": {"step": {"c": 1e308, "e": 1e308}, "momentum": {"c": -1.0, "e": 0.0}}},
    {"schedules": {"step": {"value": float("nan")}, "momentum": {"value": 0.5}}},
    {"schedules": {"step": {"value": 10**400}, "momentum": {"value": 0.5}}},
    {"options": {"threads": 0}},
    {"options": {"threads": 2.5}},
    {"dtype": "V1000000000"},
    {"dtype": {"names": ["a"] * 1000}},
    {"engine": "fused" * 1000},
    {"fused": "yes", "engine": "steps"},
]


@pytest.mark.parametrize("changes", HEADERS, ids=lambda changes: str(changes)[:40])
def test_headers_that_lie(changes, tmp_path):
    path, cell = tmp_path / "learner.npz", MAKERS["ORGFW"]
    header, arrays = half(cell, path)
    if isinstance(changes, dict):
        changed = {**header, **changes}.items()
        write(path, {name: value for name, value in changed if value is not ...}, arrays)
    else:
        write(path, changes, arrays)
    if changes not in LARGE_SEEDS:  # which are allowed
        refused(cell, path)
        return
    try:
        assert cell.kind.load(path).play().shape == (3, 5)
    except ValueError as error:
        assert "is not a saved ORGFW" in str(error)  # noqa: PT017


def test_headers_of_any_depth(tmp_path):
    path, cell = tmp_path / "learner.npz", MAKERS["ORGFW"]
    header, arrays = half(cell, path)
    inner = json.dumps({"name": "L1Ball", "size": 3, "radius": 1.0})
    for depth in (50, 2000):
        nested = '{"name": "ProductSet", "blocks": [["a", ' * depth + inner + "]]}" * depth
        text = json.dumps({**header, "set": "HERE"}).replace('"HERE"', nested)
        write(path, text.encode(), arrays)
        refused(cell, path, peak=1e7)
