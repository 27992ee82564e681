"""CIFAR-10's pickles: what is read, and that nothing in them is run."""

import copyreg
import io
import os
import pickle
import pickletools
import struct
import sys
import tracemalloc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastfw import datasets
from fastfw._images import read_cifar, read_pickle

#: Instructions for NumPy's array without content.
EMPTY_ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
BATCHES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


def batch(rows=2, seed=0):
    rng = np.random.default_rng(seed)
    return {
        b"batch_label": b"training batch",
        b"labels": rng.integers(0, 10, rows).tolist(),
        b"data": rng.integers(20, 240, (rows, 3072), dtype=np.uint8),
        b"filenames": [b"a.png"] * rows,
    }


def write_batches(folder, *, protocol=2, **replaced):
    folder.mkdir(parents=True, exist_ok=True)
    contents = {name: replaced.get(name, batch(seed=i)) for i, name in enumerate(BATCHES)}
    for name, content in contents.items():
        with (folder / name).open("wb") as file:
            pickle.dump(content, file, protocol=protocol)
    return contents


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("order", ["C", "F"])
def test_pickled_batches_are_read(tmp_path, protocol, order):
    contents = write_batches(tmp_path / "cifar-10-batches-py", protocol=protocol)
    if order == "F":
        for name in BATCHES:
            contents[name][b"data"] = np.asfortranarray(contents[name][b"data"])
        write_batches(tmp_path / "cifar-10-batches-py", protocol=protocol, **contents)
    split = datasets.load("cifar10", root=tmp_path)
    train = np.concatenate([contents[name][b"data"] for name in BATCHES[:-1]]).astype(float)
    low, high = train.min(axis=1, keepdims=True), train.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(split.X, (train - low) / (high - low))
    labels = [label for name in BATCHES[:-1] for label in contents[name][b"labels"]]
    assert split.y.tolist() == labels
    assert split.y_test.tolist() == contents["test_batch"][b"labels"]
    assert split.X.flags.writeable
    as_bytes = datasets.load("cifar10", root=tmp_path, dtype=np.uint8)
    np.testing.assert_array_equal(as_bytes.X, train)


def test_pickles_as_python_2_and_numpy_1_wrote_them_are_read(tmp_path):
    write_batches(tmp_path)
    data = bytes(range(256)) * 12  # one image
    # What cPickle made of {'data': array, 'labels': [7]}; NumPy's names were others then.
    content = (
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03"
        b"cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x01M\x00\x0c\x86"
        b"cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffK\x00tb\x89T\x00\x0c\x00\x00"
        + data
        + b"tbU\x06labelsq\x08]q\x09K\x07au."
    )
    # the oldest kind has text between quotes
    quoted = b"S" + repr(data)[1:].encode() + b"\n"
    for variant in (content, content.replace(b"T\x00\x0c\x00\x00" + data, quoted)):
        (tmp_path / "data_batch_1").write_bytes(variant)
        split = datasets.load("cifar10", root=tmp_path)
        assert split.y[0] == 7
        np.testing.assert_array_equal(split.X[0], np.tile(np.arange(256), 12) / 255)


def test_the_binary_version_is_preferred_and_missing_batches_are_named(tmp_path):
    write_batches(tmp_path)
    (tmp_path / "data_batch_3").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("cifar10", root=tmp_path)
    assert f"put data_batch_3 into {tmp_path}" in str(caught.value)


class Evil:
    """Pickles itself as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def refuse(folder, content, *, write=True):
    """Load with a bad first batch: one clear error, which names the file."""
    if write:
        write_batches(folder)
    path = folder / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the message is checked below
        datasets.load("cifar10", root=folder)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("inside", [False, True])
def test_a_malicious_pickle_runs_nothing_and_is_named(tmp_path, protocol, inside):
    trace = tmp_path / "it-ran"
    evil = Evil(os.mkdir, str(trace))
    content = pickle.dumps({**batch(), b"extra": [evil]} if inside else evil, protocol=protocol)
    message = refuse(tmp_path / "data", content)
    assert not trace.exists()
    assert f"asks for {os.name}.mkdir" in message or "asks for posix.mkdir" in message
    pickle.loads(content)  # the test can fail: it is a working attack
    assert trace.exists()


def test_the_names_of_the_classes_are_looked_at_too(tmp_path):
    trace, meta = tmp_path / "it-ran", tmp_path / "data" / "batches.meta"
    write_batches(tmp_path / "data")
    for harmless in (pickle.dumps({b"label_names": [b"cat"], b"num_vis": 3072}), b"damaged"):
        meta.write_bytes(harmless)
        assert len(datasets.load("cifar10", root=tmp_path / "data").X) == 10
    meta.write_bytes(pickle.dumps(Evil(os.mkdir, str(trace))))
    with pytest.raises(ValueError, match=r"batches\.meta: asks for .*mkdir"):
        datasets.load("cifar10", root=tmp_path / "data")
    assert not trace.exists()


def short(text):
    """Return the instruction that pushes a short text."""
    return b"\x8c" + bytes([len(text)]) + text


#: Instructions by which pickles run code, each in an attack that works on Python's unpickler.
ATTACKS = {
    "GLOBAL, REDUCE": b"cos\nmkdir\n(VTRACE\ntR.",
    "STACK_GLOBAL": b"\x80\x04" + short(b"os") + short(b"mkdir") + b"\x93(VTRACE\ntR.",
    "INST": b"(VTRACE\nios\nmkdir\n.",
    "OBJ": b"(cos\nmkdir\nVTRACE\no.",
    "NEWOBJ": b"\x80\x02ctests_pickle_victim\nVictim\n(VTRACE\nt\x81.",
    "NEWOBJ_EX": b"\x80\x04ctests_pickle_victim\nVictim\n(VTRACE\nt}\x92.",
    "BUILD, an object's method": (b"\x80\x02ctests_pickle_victim\nVictim\n)R}Vaction\nVTRACE\nsb."),
    "BUILD, attributes": b"\x80\x02ctests_pickle_victim\nPlain\n)R}Vtrace\nVTRACE\nsb.",
    "EXT1": b"\x80\x02\x82\xf0(VTRACE\ntR.",
    "EXT2": b"\x80\x02\x83\xf0\x00(VTRACE\ntR.",
    "EXT4": b"\x80\x02\x84\xf0\x00\x00\x00(VTRACE\ntR.",
}
NAMED = {
    "GLOBAL, REDUCE": "os.mkdir",
    "STACK_GLOBAL": "os.mkdir",
    "INST": "an object of os.mkdir",
    "OBJ": "os.mkdir",
    "NEWOBJ": "tests_pickle_victim.Victim",
    "NEWOBJ_EX": "tests_pickle_victim.Victim",
    "BUILD, an object's method": "tests_pickle_victim.Victim",
    "BUILD, attributes": "tests_pickle_victim.Plain",
    "EXT1": "the object registered under number 240",
    "EXT2": "the object registered under number 240",
    "EXT4": "the object registered under number 240",
}


@pytest.fixture
def victims(monkeypatch):
    """Have a module with classes whose objects do something, and a number for a function."""

    class Victim:
        def __new__(cls, path=None, **_):
            if path is not None:
                os.mkdir(path)
            return super().__new__(cls)

        def __setstate__(self, state):
            os.mkdir(state["action"])

    class Plain:
        def __setattr__(self, name, value):
            raise AssertionError

        @property
        def __dict__(self):
            return Setter()

    class Setter(dict):
        def __setitem__(self, name, value):
            os.mkdir(value)

    module = SimpleNamespace(Victim=Victim, Plain=Plain)
    monkeypatch.setitem(sys.modules, "tests_pickle_victim", module)
    monkeypatch.setitem(copyreg._inverted_registry, 240, (os.mkdir.__module__, "mkdir"))
    # Whoever has asked for it once finds it here, without its name being looked up again.
    monkeypatch.setitem(copyreg._extension_cache, 240, os.mkdir)


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_by_every_instruction_that_runs_code(tmp_path, victims, attack):
    trace = tmp_path / "it-ran"
    content = ATTACKS[attack].replace(b"TRACE", str(trace).encode())
    message = refuse(tmp_path / "data", content)
    assert not trace.exists()
    assert f"asks for {NAMED[attack]}, which is neither" in message
    assert "trust this copy no further" in message
    # The test can fail: on Python's own unpickler the attack works.
    pickle._Unpickler(io.BytesIO(content)).load()
    assert trace.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Pa name\n.", "an object outside of the file"),
        (b"\x80\x02K\x01Q.", "an object outside of the file"),
        (b"\x80\x05\x97.", "a buffer outside of the file"),
        # with names that are known, where nothing could happen either
        (b"(inumpy\nndarray\n.", "an object of numpy.ndarray"),
        (b"(cnumpy\nndarray\no.", "an object of a class"),
        (b"\x80\x02cnumpy\nndarray\n)\x81.", "a new object of a class"),
        (b"\x80\x04cnumpy\nndarray\n)}\x92.", "a new object of a class, with named arguments"),
        (b"\x80\x02cnumpy\nndarray\n}b.", "attributes of partial"),
        (b"\x80\x02c_codecs\nencode\n}b.", "attributes of partial"),
        (b"\x80\x02]}b.", "attributes of list"),
        (b"\x80\x02" + EMPTY_ARRAY + b")R.", "a call of ArrayOfBytes"),
        (b"\x80\x02})R.", "a call of dict"),
    ],
)
def test_what_could_run_code_is_refused_even_where_it_could_not(tmp_path, content, message):
    assert f"asks for {message}, which is neither" in refuse(tmp_path, content)


@pytest.mark.parametrize("name", [b"a\x1b[31m\rred", b"x" * 10_000, "na\u00efve".encode()])
def test_names_in_messages_are_short_and_have_no_control_codes(tmp_path, name):
    for content in (
        b"c" + name + b"\nb\n.",
        b"(i" + name + b"\nb\n.",
        b"\x80\x02}U\x04datacnumpy\ndtype\nX" + struct.pack("<I", len(name)) + name + b"\x85R.",
        b"L" + name + b"\n.",
    ):
        message = refuse(tmp_path, content)
        assert message.isascii()
        assert message.isprintable()
        assert len(message) - len(str(tmp_path)) < 400


def test_nothing_may_follow_the_pickle(tmp_path):
    good = pickle.dumps(batch(), protocol=4)
    message = refuse(tmp_path, good + b"\n")
    assert "1 bytes follow the end of the pickle" in message
    refuse(tmp_path, good + good)
    for protocol in (2, 4):
        refuse(tmp_path, pickle.dumps(batch(), protocol=protocol) + b".")
    # hidden in a frame that is longer than what it holds
    small = pickle.dumps({"a": 1}, protocol=4)
    assert small[2:3] == b"\x95"
    size = struct.unpack("<Q", small[3:11])[0]
    longer = small[:3] + struct.pack("<Q", size + 4) + small[11:] + b"\0\0\0\0"
    assert pickle.loads(longer) == {"a": 1}
    assert "4 bytes follow the end" in refuse(tmp_path, longer)


def nested(depth, pair):
    """Return instructions for a value of `depth` levels, each twice in the next."""
    return b")q\x00" + (b"h\x00\x86q\x00" if pair else b"\x85") * depth


@pytest.mark.parametrize(
    ("content", "message"),
    [
        # text and bytes longer than the file; an exabyte, 3 GB
        (b"\x80\x04\x8e" + struct.pack("<Q", 2**60), "promised"),
        (b"\x80\x05\x96" + struct.pack("<Q", 2**60), "promised"),
        (b"\x80\x04\x8d" + struct.pack("<Q", 2**60), "promised"),
        (b"\x80\x03B" + struct.pack("<I", 3_000_000_000), "promised"),
        (b"\x80\x02X" + struct.pack("<I", 3_000_000_000), "promised"),
        (b"\x80\x02T" + struct.pack("<i", 2_000_000_000), "promised"),
        (b"\x80\x02T" + struct.pack("<i", -1), "negative byte count"),
        (b"\x80\x02\x8b" + struct.pack("<i", 2_000_000_000), "promised"),
        (b"\x80\x04\x95" + struct.pack("<Q", 2**60), "promised"),
        # a place in the memo, for which the unpickler in C makes room for all before it: 64 GB
        (b"\x80\x02Nr" + struct.pack("<I", 2**32 - 1) + b".", "a NoneType, where"),
        (b"\x80\x02Np" + b"9" * 18 + b"\n.", "a NoneType, where"),
        # a frame that ends within an instruction, where the unpickler in C reads on elsewhere
        (b"\x80\x04\x95" + struct.pack("<Q", 3) + b"X\x04\x00\x00\x00abcd.", "end of frame"),
        (b"\x80\x04\x95" + struct.pack("<Q", 9) + b"\x95" + bytes(8) + b"N.", "a NoneType, where"),
        # a text that grows by itself
        (b"\x80\x05\x96" + struct.pack("<Q", 1) + b"a(K\x01e.", "a bytearray, where"),
        # one text encoded again and again
        (b"\x80\x02(X\x10\x27\x00\x00" + b"a" * 10_000 + b"q\x00X\x06\x00\x00\x00latin1q\x01"
         + b"c_codecs\nencode\nq\x02" + b"h\x02h\x00h\x01\x86R" * 30_000 + b"t.", "more bytes"),
        # values that double with each level: to write them, to compare them or to hash them takes
        # time and memory without end, or more stack than there is
        (b"\x80\x02}" + nested(100, True) + b"Ns.", "keys that are not text"),
        (b"\x80\x02}" + nested(200_000, False) + b"Ns.", "keys that are not text"),
        (b"\x80\x02cnumpy\ndtype\n" + nested(100, True) + b"\x85R.", "an array of type"),
        (b"\x80\x02" + nested(100, True) + b"K\x01\x93.", "requires str"),
        (b"\x80\x02}U\x04data" + EMPTY_ARRAY + b"(K\x01" + nested(100, True)
         + b"cnumpy\ndtype\nU\x02u1\x85R\x89U\x00tbs.", "'data' has shape"),
        (b"\x80\x04\x8f(" + nested(100, True) + b"\x90.", "no instruction for data"),
        # numbers of a million digits
        (b"L" + b"9" * 1_000_000 + b"L\n.", "damaged"),
        (b"\x80\x02}U\x04data" + EMPTY_ARRAY + b"(K\x01\x8b" + struct.pack("<i", 100_000)
         + b"\x7f" * 100_000 + b"\x85cnumpy\ndtype\nU\x02u1\x85R\x89U\x00tbs.", "damaged"),
    ],
)  # fmt: skip
def test_memory_and_time_are_in_proportion_to_the_file(tmp_path, content, message):
    write_batches(tmp_path)
    tracemalloc.start()
    try:
        said = refuse(tmp_path, content, write=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert message in said
    assert peak < 2e6 + 100 * len(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({b"data": None}, "no array 'data'"),
        ({b"data": np.zeros((2, 3072))}, "an array of type 'f8'"),
        ({b"data": np.zeros((2, 3072), dtype=object)}, "an array of type 'O8'"),
        ({b"data": np.zeros((2, 3071), np.uint8)}, "shape (2, 3071), (n, 3072) is wanted"),
        ({b"data": np.zeros(3072, np.uint8)}, "shape (3072,)"),
        ({b"data": np.zeros((3, 3072), np.uint8)}, "3 images, but 2 labels"),
        ({b"labels": "ab"}, "no list 'labels'"),
        ({b"labels": [1, True]}, "no list 'labels'"),
        ({b"labels": [1, 300]}, "labels beyond 0, ..., 9"),
        ({b"labels": [1, 10]}, "label 1 is 10, but classes are 0, ..., 9"),
    ],
)
def test_batches_with_other_content(tmp_path, change, message):
    assert message in refuse(tmp_path, pickle.dumps({**batch(), **change}, protocol=2))


class Plain(pickle._Unpickler):
    """Python's unpickler with NumPy's functions and no others: what a batch really says."""

    def find_class(self, module, name):
        assert module.partition(".")[0] in ("numpy", "_codecs", "__builtin__", "builtins")
        assert name in ("ndarray", "dtype", "_reconstruct", "_frombuffer", "encode", "bytes")
        return super().find_class(module, name)


#: Pieces of hostile pickles.
PIECES = [
    *(bytes([code]) for code in b"(.NKR}]t)abdeosulQ0122\x81\x85\x86\x87\x88\x90\x91\x92\x93\x94"),
    *(attack[2:] for attack in ATTACKS.values()),
    b"cos\nsystem\n", b"h\x00", b"j\xff\xff\xff\xff", b"r\xff\xff\xff\xff", b"q\x00",
    b"B\xff\xff\xff\xff", b"\x96" + b"\xff" * 7 + b"\x7f", b"\x95" + b"\x10" + bytes(7),
    b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"c_codecs\nencode\n",
]  # fmt: skip


@st.composite
def damaged(draw):
    """Return a batch of one image in which some bytes are changed, lost, doubled or new."""
    good = batch(rows=1, seed=draw(st.integers(0, 3)))
    content = bytearray(pickle.dumps(good, protocol=draw(st.integers(0, 5))))
    places = [at for _, _, at in pickletools.genops(bytes(content))]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.sampled_from(places) | st.integers(0, len(content)))
        end = at + draw(st.integers(1, 12))
        match draw(st.integers(0, 4)):
            case 0:
                content[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case 1:
                del content[at:end]
            case 2:
                content[at:at] = content[at:end]
            case 3:
                content[at:at] = draw(st.sampled_from(PIECES))
            case _:
                del content[at:]
    return bytes(content)


@settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(content=damaged())
def test_damaged_batches_are_refused_or_say_what_python_reads(tmp_path, monkeypatch, content):
    def imported(*_, **__):
        raise AssertionError("something was imported or looked up")

    path = tmp_path / "batch"
    path.write_bytes(content)
    with monkeypatch.context() as patched:
        patched.setattr(pickle._Unpickler, "find_class", imported)
        patched.setattr(pickle, "load", imported)
        patched.setattr(pickle, "loads", imported)
        tracemalloc.start()
        try:
            found = read_cifar([path], read_pickle, np.dtype(np.uint8))
        except ValueError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017
            assert str(error).isprintable()  # noqa: PT017
            return
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 1e6 + 100 * len(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = Plain(io.BytesIO(content), encoding="bytes").load()
    except Exception:  # NumPy looks at things that change nothing in an array of bytes
        return
    entries = {k.encode() if isinstance(k, str) else k: v for k, v in expected.items()}
    np.testing.assert_array_equal(found[0], entries[b"data"])
    assert found[1].tolist() == entries[b"labels"]
