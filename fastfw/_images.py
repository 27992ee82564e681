"""Images in the files that MNIST and CIFAR-10 are published in, as rows of numbers in [0, 1].

Files are taken for untrusted: damage ends in one ValueError that names the file, nothing that a
pickle asks for is run, and no memory is reserved on the word of a header alone.
"""

from __future__ import annotations

import gzip
import io
import math
import pickle
import pickletools
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._messages import shown

_CIFAR_PIXELS = 3 * 32 * 32
_READ = 1 << 20

_ByteArray = npt.NDArray[np.uint8]
#: Images (n, d) and their labels (n,).
_Batch = tuple[_ByteArray, _ByteArray]


# --- MNIST ----------------------------------------------------------------------------------------


def read_idx_pair(
    images: Path, classes: Path, dtype: np.dtype[Any]
) -> tuple[FloatArray, IndexArray]:
    """Read one file of images and the file of its labels."""
    y = _class_numbers(_read_idx(classes, ndim=1), classes)
    pixels = _read_idx(images, ndim=3)
    if len(pixels) != len(y):
        raise ValueError(f"{images} has {len(pixels)} images, but {classes} has {len(y)} labels")
    return scaled(pixels, dtype), y


def _read_idx(path: Path, *, ndim: int) -> _ByteArray:
    """Read an IDX file of unsigned bytes, gzipped or not, whatever its name says."""
    # Told apart by content: browsers are known to unpack a download and keep its name.
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    content = bytearray()
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            shape = _idx_shape(file.read(4 + 4 * ndim), path, ndim)
            promised = math.prod(shape)
            # Grows with what really arrives. One byte more, for none: it brings the checksum.
            while piece := file.read(min(_READ, promised + 1 - len(content))):
                content += piece
    except EOFError:
        raise ValueError(f"{path}: the gzip file is truncated; fetch it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: the gzip file is corrupt ({error})") from None
    held = len(content)
    if held != promised:
        fault, follow = "truncated", str(held)
        if held > promised:
            fault, follow = "longer than its header says", "more"
        raise ValueError(
            f"{path}: {fault}: shape {shape} takes {promised} bytes, but {follow} follow the header"
        )
    return np.frombuffer(content, np.uint8).reshape(shape)


def _idx_shape(header: bytes, path: Path, ndim: int) -> tuple[int, ...]:
    """Return the shape that an IDX header promises."""
    length, magic = 4 + 4 * ndim, bytes((0, 0, 8, ndim))
    if header[:4] != magic:
        raise ValueError(
            f"{path}: not an IDX file of unsigned bytes with {ndim} dimension"
            f"{'s' if ndim > 1 else ''}: it begins with "
            f"{header[:4].hex(' ') or 'nothing'}, not with {magic.hex(' ')}"
        )
    if len(header) < length:
        raise ValueError(
            f"{path}: truncated: an IDX header has {length} bytes, but the file {len(header)}"
        )
    shape: tuple[int, ...] = struct.unpack(f">{ndim}I", header[4:])
    if 0 in shape:
        raise ValueError(f"{path}: its header gives the empty shape {shape}")
    return shape


def scaled(pixels: _ByteArray, dtype: np.dtype[Any]) -> FloatArray:
    """Return pixels / 255 as an (n, d) array, in one pass and with no other array made.

    Bytes stay as they are.
    """
    flat = pixels.reshape(len(pixels), -1)
    X: npt.NDArray[Any] = np.empty(flat.shape, dtype=dtype)
    if dtype == np.uint8:
        X[...] = flat
    else:
        np.divide(flat, 255, out=X, dtype=dtype)
    return X


def _class_numbers(values: _ByteArray, path: Path) -> IndexArray:
    """Return label bytes as intp, having checked that they are 0, ..., 9."""
    if values.max() > 9:
        i = int(np.argmax(values > 9))
        raise ValueError(f"{path}: label {i} is {values[i]}, but classes are 0, ..., 9")
    return values.astype(np.intp)


# --- CIFAR-10 -------------------------------------------------------------------------------------


def read_cifar(
    paths: list[Path], read: Callable[[Path], _Batch], dtype: np.dtype[Any]
) -> tuple[FloatArray, IndexArray]:
    """Read batches by `read_records` or `read_pickle`: each image scaled by its own extremes."""
    batches = [read(path) for path in paths]
    y = [_class_numbers(labels, path) for (_, labels), path in zip(batches, paths, strict=True)]
    X: npt.NDArray[Any] = np.empty((sum(map(len, y)), _CIFAR_PIXELS), dtype)
    stop = 0
    for pixels, _ in batches:
        start, stop = stop, stop + len(pixels)
        _stretch(pixels, out=X[start:stop])
    return X, np.concatenate(y)


def _stretch(pixels: _ByteArray, *, out: npt.NDArray[Any]) -> None:
    """Write images into `out`, each scaled by its own minimum and maximum; bytes as they are."""
    if out.dtype == np.uint8:
        out[...] = pixels
        return
    low = pixels.min(axis=1, keepdims=True)
    # An image of one colour is zeros once its minimum is gone: dividing by 1 keeps them.
    span = np.maximum(pixels.max(axis=1, keepdims=True) - low, 1)
    # exact in bytes: no pixel is below the minimum
    np.divide(pixels - low, span, out=out, dtype=out.dtype)


def read_records(path: Path) -> _Batch:
    """Read a file of CIFAR-10's binary version."""
    record = 1 + _CIFAR_PIXELS
    content = np.fromfile(path, np.uint8)
    if content.size == 0 or content.size % record:
        raise ValueError(
            f"{path}: truncated or not a CIFAR-10 binary file: "
            f"{content.size} bytes are not a whole number of records of {record} bytes"
        )
    records = content.reshape(-1, record)
    return records[:, 1:], records[:, 0]


def read_pickle(path: Path) -> _Batch:
    """Read a file of CIFAR-10's Python version, running nothing that it may ask for."""
    content = path.read_bytes()
    try:
        found = _Unpickler(content).load()
        if not isinstance(found, dict):
            raise ValueError(f"a {type(found).__name__}, where a dictionary is wanted")
        # Python 2 wrote the keys as bytes
        entries = {k.encode() if isinstance(k, str) else k: v for k, v in found.items()}
        pixels = _pixels(entries.get(b"data"))
        return pixels, _labels(entries.get(b"labels"), len(pixels))
    except _Refused as error:
        raise _refusal(path, error) from None
    except MemoryError:
        raise ValueError(f"{path}: claims more content than fits into memory") from None
    # Damage surfaces as a dozen kinds of exception from the unpickler.
    except Exception as error:
        raise ValueError(
            f"{path}: not a batch of CIFAR-10's Python version, or damaged: "
            f"{shown(str(error), 200)}"
        ) from None


def refuse_calls(path: Path) -> None:
    """Raise ValueError if a pickle, of whose content nothing is wanted, asks for a function."""
    try:
        _Unpickler(path.read_bytes()).load()
    except _Refused as error:
        raise _refusal(path, error) from None
    except Exception:  # damage does no harm
        return


class _Refused(Exception):
    """What a pickle asks for and does not get."""


def _refusal(path: Path, error: _Refused) -> ValueError:
    return ValueError(
        f"{path}: asks for {error}, which is neither an array nor bytes, a list or a dictionary; "
        "such a pickle can run any code, so nothing of it was loaded or run: fetch the file again "
        "from where CIFAR-10 is published, and trust this copy no further"
    )


class _Dtype:
    """Stands for the dtype of unsigned bytes."""

    def __setstate__(self, state: Any) -> None:
        if not (isinstance(state, tuple) and len(state) == 8 and state[2:5] == (None,) * 3):
            raise ValueError("bytes with fields")


class ArrayOfBytes:
    """What a pickle says of an array: (version, shape, dtype, Fortran order, content)."""

    def __init__(self, state: Any = None) -> None:
        self.state = state

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    """Python's unpickler, for what `_checked` lets through; names lead to what is here."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(_checked(content)), encoding="bytes")
        self._room = len(content)  # bytes that text may still be encoded to: it is part of the file

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name; nothing is imported."""
        _made_by(module, name)
        return partial(self._make, name)

    def _make(self, *call: Any) -> Any:
        """Do what a known name stands for."""
        match call:
            case "_reconstruct", partial(args=("ndarray",)), (0,), "b" | b"b":
                return ArrayOfBytes()
            case "_frombuffer", content, dtype, shape, "C" | "F" as order:
                return ArrayOfBytes((1, shape, dtype, order == "F", content))
            case ("dtype", code) | ("dtype", code, int(), int()):
                plain = code.decode("latin-1") if isinstance(code, bytes) else code
                if plain not in ("u1", "|u1", "uint8"):
                    raise ValueError(
                        f"an array of type '{shown(plain)}', where bytes (u1) are wanted"
                    )
                return _Dtype()
            case "encode", str(text), "latin1":
                self._room -= len(text)
                if self._room < 0:
                    raise ValueError("more bytes than the file has")
                return text.encode("latin-1")
            case ("bytes",):
                return b""
        raise ValueError(f"{call[0]} with arguments that no array has")


#: Names that are known, and what a call of them makes.
_NAMES = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "_Dtype",
    # by which Python 3 writes bytes, and no bytes, into older kinds of pickles
    ("_codecs", "encode"): "bytes",
    ("__builtin__", "bytes"): "bytes",
}
for _core in ("numpy.core", "numpy._core"):  # of NumPy 1 and 2
    _NAMES[f"{_core}.multiarray", "_reconstruct"] = "ArrayOfBytes"
    _NAMES[f"{_core}.numeric", "_frombuffer"] = "ArrayOfBytes"


def _made_by(module: str, name: str) -> str:
    if (module, name) not in _NAMES:
        raise _Refused(shown(f"{module}.{name}"))
    return _NAMES[module, name]


_PLAIN = frozenset(
    """
    PROTO STOP MARK NONE NEWTRUE NEWFALSE INT LONG BININT BININT1 BININT2 LONG1 LONG4 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8 EMPTY_TUPLE TUPLE
    TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT DICT SETITEM SETITEMS
    """.split()  # noqa: SIM905  shorter to read
)
#: Instructions that run code, and what they ask for.
_RUNS = {
    "INST": "an object of {}",
    "OBJ": "an object of a class",
    "NEWOBJ": "a new object of a class",
    "NEWOBJ_EX": "a new object of a class, with named arguments",
    "PERSID": "an object outside of the file",
    "BINPERSID": "an object outside of the file",
    "NEXT_BUFFER": "a buffer outside of the file",
    "READONLY_BUFFER": "a buffer outside of the file",
    # what programs register with `copyreg`
    "EXT1": "the object registered under number {}",
    "EXT2": "the object registered under number {}",
    "EXT4": "the object registered under number {}",
}
_OPCODES = {op.code.encode("latin-1"): op for op in pickletools.opcodes}
#: What instructions take off the stack, and leave there.
_TAKEN = {op.name: [kind.name for kind in op.stack_before] for op in pickletools.opcodes}
_MADE = {op.name: [(kind.name, None) for kind in op.stack_after] for op in pickletools.opcodes}
#: What instructions must find, by what pickletools calls it.
_WANTED = {
    "list": "adds to a list where there is none",
    "dict": "adds to a dictionary where there is none",
    "str": "a name that is no text",
}


def _instructions(content: bytes) -> Iterator[tuple[pickletools.OpcodeInfo, Any, int, int]]:
    """Yield the instructions of a pickle: what it is, its argument, where it starts and stops.

    As `pickletools.genops`, but names and strings of Python 2 need not be ASCII.
    """
    file = io.BytesIO(content)
    name = ""
    while name != "STOP":
        start = file.tell()
        code = file.read(1)
        if code not in _OPCODES:
            raise ValueError(f"byte {code.hex()} at {start} is no instruction for data")
        op = _OPCODES[code]
        name = op.name
        try:
            if name in ("GLOBAL", "INST", "STRING"):
                lines = [file.readline() for _ in range(1 if name == "STRING" else 2)]
                if lines[-1][-1:] != b"\n":
                    raise ValueError("no end of line")
                arg: Any = [line[:-1].decode("latin-1") for line in lines]
            else:
                arg = op.arg.reader(file) if op.arg else None
        except ValueError as error:
            raise ValueError(f"{name} is not followed by what it promised: {error}") from None
        yield op, arg, start, file.tell()


def _checked(content: bytes) -> bytes:
    """Return a pickle without its frames, having seen that it does no more than make plain data.

    Python's unpickler would reserve whatever is promised, make room for any place in the memo that
    a file names, and hash whatever is to be a key: nested tuples without end. Where an instruction
    crosses the end of a frame, it reads other instructions than are seen here.
    """
    # A value is its type and, of text, what it says; of a known name, what a call of it makes.
    stack: list[tuple[str, Any]] = []
    marks: list[int] = []
    memo: dict[int, tuple[str, Any]] = {}
    pieces: list[bytes] = []
    kept = frame = stop = 0  # where the next piece starts, a frame and an instruction stop
    for op, arg, start, stop in _instructions(content):
        name = op.name
        if start < frame < stop:
            raise ValueError("goes on beyond the end of a frame")
        if name == "FRAME":
            if start < frame or arg > len(content) - stop:
                raise ValueError("a frame that is cut short")
            pieces.append(content[kept:start])
            kept, frame = stop, stop + arg
            continue
        if name in _RUNS:
            asked = ".".join(arg) if name == "INST" else arg
            raise _Refused(_RUNS[name].format(shown(str(asked))))

        before = _TAKEN[name]
        if not before and name in _PLAIN and name != "MARK":
            stack += _MADE[name]
            continue
        group: list[tuple[str, Any]] = []
        if "mark" in before:
            if not marks:
                raise ValueError("ends a group of values that it has not begun")
            mark = marks.pop()
            group = stack[mark:]
            del stack[mark:]
            before = before[: before.index("mark")]
        if "PUT" in name:  # looks at a value
            before = ["any"]
        first = len(stack) - len(before)
        if first < (marks[-1] if marks else 0):
            raise ValueError("takes a value where there is none")
        values = stack[first:]
        del stack[first:]
        for wanted, (found, _) in zip(before, values, strict=True):
            if wanted in _WANTED and found != wanted:
                raise ValueError(_WANTED[wanted])

        keys = group[::2]
        if name == "SETITEM":
            keys = values[1:2]
        # Other keys may take forever to be compared, or more stack than there is.
        if name in ("SETITEM", "SETITEMS", "DICT") and any(
            found not in ("str", "bytes", "bytes_or_str") for found, _ in keys
        ):
            raise ValueError("a dictionary with keys that are not text")
        match name:
            case "MARK":
                marks.append(len(stack))
            case "PUT" | "BINPUT" | "LONG_BINPUT" | "MEMOIZE":
                place = len(memo) if name == "MEMOIZE" else arg
                if not 0 <= place < len(content):  # of what is put there, each takes a byte
                    raise ValueError(f"place {shown(place)} in the memo of a file not as long")
                memo[place] = values[0]
                stack += values
            case "GET" | "BINGET" | "LONG_BINGET":
                if arg not in memo:
                    raise ValueError("refers to a value that it has not stored")
                stack.append(memo[arg])
            case "GLOBAL" | "STACK_GLOBAL":
                module, function = arg or [text for _, text in values]
                stack.append(("_Known", _made_by(module, function)))
            case "REDUCE":
                if values[0][0] != "_Known":
                    raise _Refused(f"a call of {values[0][0]}")
                stack.append((values[0][1], None))
            case "BUILD":
                if values[0][0] not in ("ArrayOfBytes", "_Dtype"):
                    raise _Refused(f"attributes of {values[0][0]}")
                stack.append(values[0])
            case "UNICODE" | "BINUNICODE" | "SHORT_BINUNICODE" | "BINUNICODE8":
                stack.append(("str", arg))
            case _ if name in _PLAIN:
                stack += _MADE[name]
            case _:
                raise ValueError(f"{name} is no instruction for data")
    if stop < len(content):
        raise ValueError(f"{len(content) - stop} bytes follow the end of the pickle")
    if stack or marks:
        raise ValueError("ends with something unfinished")
    return b"".join((*pieces, content[kept:]))


def _pixels(array: object) -> _ByteArray:
    """Return the array that is described."""
    if not isinstance(array, ArrayOfBytes):
        raise ValueError("no array 'data'")
    if not (isinstance(array.state, tuple) and len(array.state) == 5):
        raise ValueError("'data' is an array without content")
    version, shape, dtype, fortran, content = array.state
    if version != 1 or not isinstance(fortran, bool | int):
        raise ValueError("'data' is an array of unknown layout")
    if not isinstance(dtype, _Dtype) or not isinstance(content, bytes | bytearray):
        raise ValueError("'data' is not an array of bytes")
    if not (
        isinstance(shape, tuple)
        and [type(n) for n in shape] == [int, int]
        and shape[0] > 0
        and shape[1] == _CIFAR_PIXELS
    ):
        raise ValueError(f"'data' has shape {shown(shape)}, (n, {_CIFAR_PIXELS}) is wanted")
    if math.prod(shape) != len(content):
        raise ValueError(f"'data' has {len(content)} bytes, but shape {shape} takes another number")
    return np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")


def _labels(values: object, count: int) -> _ByteArray:
    """Return the list of labels as bytes."""
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise ValueError("no list 'labels' of whole numbers")
    if len(values) != count:
        raise ValueError(f"{count} images, but {len(values)} labels")
    if not all(0 <= value < 256 for value in values):
        raise ValueError("labels beyond 0, ..., 9")
    return np.array(values, np.uint8)
