"""Images in the files that MNIST and CIFAR-10 are published in, as rows of numbers in [0, 1].

Files are taken for untrusted: damage ends in one ValueError that names the file, nothing that a
pickle asks for is run, and no memory is reserved on the word of a header alone.
"""

from __future__ import annotations

import gzip
import io
import math
import pickle
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._messages import escape

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
    return scale_pixels(pixels, dtype), y


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


def scale_pixels(pixels: _ByteArray, dtype: np.dtype[Any]) -> FloatArray:
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
    unpickler = _Unpickler(path)
    try:
        found = unpickler.load()
        if not isinstance(found, dict):
            raise ValueError(f"a {type(found).__name__}, where a dictionary is wanted")
        # Python 2 wrote the keys as bytes
        entries = {k.encode() if isinstance(k, str) else k: v for k, v in found.items()}
        pixels = _pixels(entries.get(b"data"))
        return pixels, _labels(entries.get(b"labels"), len(pixels))
    except _Refused:
        raise
    except MemoryError:
        raise ValueError(f"{path}: claims more content than fits into memory") from None
    # Damage surfaces as a dozen kinds of exception from the unpickler.
    except Exception as error:
        raise ValueError(
            f"{path}: not a batch of CIFAR-10's Python version, or damaged: "
            f"{escape(str(error), 200)}"
        ) from None


def refuse_calls(path: Path) -> None:
    """Raise ValueError if a pickle, of whose content nothing is wanted, asks for a function."""
    try:
        _Unpickler(path).load()
    except _Refused:
        raise
    except Exception:  # damage does no harm
        return


class _Refused(ValueError):
    """A pickle asks for what it does not get."""


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


class _Content(io.BytesIO):
    """The content of a file, which says so where it is shorter than it promised."""

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        if size is not None and len(found) < size:
            raise ValueError(f"{size} bytes are promised, but {len(found)} follow")
        return found


#: Instructions for plain data and for names, which lead no further than `find_class`.
_DATA = """
    PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE INT LONG BININT BININT1 BININT2 LONG1 LONG4 FLOAT
    BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8
    BINBYTES SHORT_BINBYTES BINBYTES8 EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST
    LIST APPEND APPENDS EMPTY_DICT PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET
    LONG_BINGET GLOBAL STACK_GLOBAL EXT1 EXT2 EXT4
"""
#: Instructions that run code, and what they ask for.
_RUN = {
    "OBJ": "an object of a class",
    "NEWOBJ": "a new object of a class",
    "NEWOBJ_EX": "a new object of a class, with named arguments",
    "PERSID": "an object outside of the file",
    "BINPERSID": "an object outside of the file",
    "NEXT_BUFFER": "a buffer outside of the file",
    "READONLY_BUFFER": "a buffer outside of the file",
}
#: Names that are known.
_NAMES = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    # by which Python 3 writes bytes, and no bytes, into older kinds of pickles
    ("_codecs", "encode"),
    ("__builtin__", "bytes"),
}
for _core in ("numpy.core", "numpy._core"):  # of NumPy 1 and 2
    _NAMES |= {(f"{_core}.multiarray", "_reconstruct"), (f"{_core}.numeric", "_frombuffer")}


class _Unpickler(pickle._Unpickler):
    """Python's unpickler for plain data and arrays of bytes, which refuses all else.

    The one in Python: the one in C makes room for whatever is promised.
    """

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        self._file = _Content(content)
        super().__init__(self._file, encoding="bytes")
        self._path = path
        self._room = len(content)  # bytes that text may still be encoded to: it is part of the file

    def load(self) -> Any:
        """Return what the file holds."""
        found = super().load()
        reader: Any = self
        left = len(reader.read(-1)) + len(self._file.read())
        if left:
            raise ValueError(f"{left} bytes follow the end of the pickle")
        return found

    def refuse(self, what: str) -> NoReturn:
        """Say what is asked for, and what to do."""
        raise _Refused(
            f"{self._path}: asks for {escape(what)}, which is neither an array nor bytes, a list "
            "or a dictionary; such a pickle can run any code, so nothing of it was loaded or run: "
            "fetch the file again from where CIFAR-10 is published, and trust this copy no further"
        )

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name; nothing is imported."""
        if (module, name) not in _NAMES:
            self.refuse(f"{module}.{name}")
        return partial(self._make, name)

    def get_extension(self, code: int) -> None:
        """Refuse what programs register with `copyreg`."""
        self.refuse(f"the object registered under number {code}")

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
                        f"an array of type '{escape(plain)}', where bytes (u1) are wanted"
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


def _code(name: str) -> int:
    """Return the code of an instruction."""
    return int(getattr(pickle, name)[0])


_as_python: dict[int, Callable[[Any], None]] = pickle._Unpickler.dispatch


def _reduce(unpickler: Any) -> None:
    called = unpickler.stack[-2]
    if not isinstance(called, partial):
        unpickler.refuse(f"a call of {type(called).__name__}")
    _as_python[_code("REDUCE")](unpickler)


def _build(unpickler: Any) -> None:
    built = unpickler.stack[-2]
    if not isinstance(built, ArrayOfBytes | _Dtype):
        unpickler.refuse(f"attributes of {type(built).__name__}")
    _as_python[_code("BUILD")](unpickler)


def _inst(unpickler: Any) -> None:
    names = [unpickler.readline()[:-1].decode("latin-1") for _ in range(2)]
    unpickler.refuse(f"an object of {'.'.join(names)}")


def _bytearray(unpickler: Any) -> None:
    (size,) = struct.unpack("<Q", unpickler.read(8))
    unpickler.append(bytearray(unpickler.read(size)))


def _with_text_keys(name: str, keys: slice) -> Callable[[Any], None]:
    """Make an instruction for dictionaries look at keys, where they lie on the stack.

    Others than text may take forever to be compared, or more stack than there is.
    """

    def load(unpickler: Any) -> None:
        if not all(isinstance(key, str | bytes) for key in unpickler.stack[keys]):
            raise ValueError("a dictionary with keys that are not text")
        _as_python[_code(name)](unpickler)

    return load


class _Instructions(dict[int, Callable[[Any], None]]):
    """What is done at each instruction, by its code."""

    def __missing__(self, code: int) -> Any:
        raise ValueError(f"byte {code:02x} is no instruction for data")


_Unpickler.dispatch = _Instructions(
    {
        **{_code(name): _as_python[_code(name)] for name in _DATA.split()},
        **{_code(name): partial(_Unpickler.refuse, what=what) for name, what in _RUN.items()},
        _code("REDUCE"): _reduce,
        _code("BUILD"): _build,
        _code("INST"): _inst,
        _code("BYTEARRAY8"): _bytearray,
        _code("SETITEM"): _with_text_keys("SETITEM", slice(-2, -1)),
        _code("SETITEMS"): _with_text_keys("SETITEMS", slice(0, None, 2)),
        _code("DICT"): _with_text_keys("DICT", slice(0, None, 2)),
    }
)


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
        raise ValueError(f"'data' has shape {escape(shape)}, (n, {_CIFAR_PIXELS}) is wanted")
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
