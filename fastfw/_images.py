"""Images in the files that MNIST and CIFAR-10 are published in, as rows of numbers in [0, 1].

Files are taken for untrusted: damage ends in one ValueError that names the file, and no memory is
reserved on the word of a header alone.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray

__all__ = ["CIFAR_PIXELS", "class_numbers", "read_cifar", "read_idx_pair", "scaled", "stretched"]

CIFAR_PIXELS = 3 * 32 * 32

_READ = 1 << 20

_ByteArray = npt.NDArray[np.uint8]


def read_idx_pair(
    images: Path, classes: Path, dtype: np.dtype[Any]
) -> tuple[FloatArray, IndexArray]:
    """Read one file of images and the file of its labels."""
    y = class_numbers(_read_idx(classes, ndim=1), classes)
    pixels = _read_idx(images, ndim=3)
    if len(pixels) != len(y):
        raise ValueError(f"{images} has {len(pixels)} images, but {classes} has {len(y)} labels")
    return scaled(pixels, dtype), y


def _read_idx(path: Path, *, ndim: int) -> _ByteArray:
    """Read an IDX file of unsigned bytes, gzipped or not, whatever its name says."""
    # Told apart by content: browsers are known to unpack a download and keep its name.
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            shape, header = _idx_header(file, path, ndim)
            promised, held = math.prod(shape), os.fstat(file.fileno()).st_size - header
            if held != promised:
                raise ValueError(_wrong_size(path, shape, promised, held))
            values = np.fromfile(file, dtype=np.uint8)
            if values.size != promised:
                raise ValueError(_wrong_size(path, shape, promised, values.size))
            return values.reshape(shape)
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                shape, header = _idx_header(unpacked, path, ndim)
                promised = math.prod(shape)
                # Grows with what really arrives, never beyond what was promised.
                content = bytearray()
                while len(content) < promised:
                    piece = unpacked.read(min(_READ, promised - len(content)))
                    if not piece:
                        raise ValueError(_wrong_size(path, shape, promised, len(content)))
                    content += piece
                if unpacked.read(1):  # reaching the end also checks the checksum
                    raise ValueError(
                        f"{path}: longer than its header says: {promised} bytes for shape {shape}"
                    )
        except EOFError:
            raise ValueError(f"{path}: the gzip file is truncated; fetch it again") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: the gzip file is corrupt ({error})") from None
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def _idx_header(
    file: IO[bytes] | gzip.GzipFile, path: Path, ndim: int
) -> tuple[tuple[int, ...], int]:
    """Return the shape that an IDX header promises, and the header's length."""
    length = 4 + 4 * ndim
    header = file.read(length)
    magic = bytes((0, 0, 8, ndim))
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
    return shape, length


def _wrong_size(path: Path, shape: tuple[int, ...], promised: int, held: int) -> str:
    fault = "truncated" if held < promised else "longer than its header says"
    return f"{path}: {fault}: shape {shape} takes {promised} bytes, but {held} follow the header"


def read_cifar(paths: list[Path], dtype: np.dtype[Any]) -> tuple[FloatArray, IndexArray]:
    """Read files of records, one at a time, each image scaled by its own minimum and maximum."""
    record = 1 + CIFAR_PIXELS
    counts = []
    for path in paths:
        size = path.stat().st_size
        if size == 0 or size % record:
            raise ValueError(
                f"{path}: truncated or not a CIFAR-10 binary file: "
                f"{size} bytes are not a whole number of records of {record} bytes"
            )
        counts.append(size // record)
    X = np.empty((sum(counts), CIFAR_PIXELS), dtype=dtype)
    y = np.empty(len(X), dtype=np.intp)
    start = 0
    for path, count in zip(paths, counts, strict=True):
        content = np.fromfile(path, dtype=np.uint8)
        if content.size != count * record:
            raise ValueError(f"{path}: changed while it was read")
        records = content.reshape(count, record)
        rows = slice(start, start + count)
        y[rows] = class_numbers(records[:, 0], path)
        stretched(records[:, 1:], out=X[rows])
        start += count
    return X, y


def stretched(pixels: _ByteArray, *, out: FloatArray) -> None:
    """Write images into `out`, each scaled by its own minimum and maximum; `pixels` is spoilt.

    Bytes are written as they are.
    """
    if out.dtype == np.uint8:
        out[...] = pixels
        return
    low = pixels.min(axis=1, keepdims=True)
    span = pixels.max(axis=1, keepdims=True) - low
    # An image of one colour is zeros once its minimum is gone: dividing by 1 keeps them.
    np.maximum(span, 1, out=span)
    np.subtract(pixels, low, out=pixels)  # exact in bytes: no pixel is below the minimum
    np.divide(pixels, span, out=out, dtype=out.dtype)


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


def class_numbers(values: _ByteArray, path: Path) -> IndexArray:
    """Return label bytes as intp, having checked that they are 0, ..., 9."""
    if values.max() > 9:
        i = int(np.argmax(values > 9))
        raise ValueError(f"{path}: label {i} is {values[i]}, but classes are 0, ..., 9")
    return values.astype(np.intp)
