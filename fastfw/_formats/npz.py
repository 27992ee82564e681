"""Arrays from .npz files, which are taken for untrusted: nothing in them is unpickled."""

from __future__ import annotations

import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, features, fewer_classes_than_rows, labels

# Deflate cannot shrink anything by more than this factor, so a larger claim is a lie.
_DEFLATE_LIMIT = 1032

_Part = tuple[FloatArray, IndexArray]


def read_split(path: Path, dtype: np.dtype[Any]) -> tuple[_Part, _Part | None]:
    """Read X and y, and X_test and y_test if they are there, from an .npz file."""
    arrays = read_npz(path, ("X", "y", "X_test", "y_test"))
    recipe = "to write one: np.savez_compressed(path, X=X, y=y)"
    missing = [key for key in ("X", "y") if key not in arrays]
    if missing:
        raise ValueError(f"{path}: holds no array {' and no '.join(missing)}; {recipe}")
    if ("X_test" in arrays) != ("y_test" in arrays):
        raise ValueError(f"{path}: X_test and y_test must be there together, or neither of them")

    def checked(X: str, y: str, width: int | None) -> _Part:
        try:
            # Taken out, so that an array that has to be converted does not outlive its copy.
            rows = features(arrays.pop(X), name=X, n_features=width, dtype=dtype)
            classes = labels(arrays.pop(y), name=y, n_samples=len(rows))
            if y == "y":  # the test part may be small
                fewer_classes_than_rows(classes)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None
        # Nobody else holds this memory; what a caller does with it is the caller's affair.
        rows.flags.writeable = True
        classes.flags.writeable = True
        return rows, classes

    X, y = checked("X", "y", None)
    width = X.shape[1]
    if "X_test" not in arrays or (
        arrays["X_test"].shape == (0, width) and arrays["y_test"].shape == (0,)
    ):
        return (X, y), None
    return (X, y), checked("X_test", "y_test", width)


def read_npz(path: Path, keys: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """Read those of the named arrays that an .npz file has, without unpickling anything."""
    with path.open("rb") as file:
        if file.read(1) == b"\x80":
            raise ValueError(
                f"{path}: a pickle, not an .npz file, and pickles are not loaded: they can run any "
                "code; write the arrays with np.savez_compressed(path, X=X, y=y)"
            )
        size = os.fstat(file.fileno()).st_size
        arrays: dict[str, npt.NDArray[Any]] = {}
        try:
            with zipfile.ZipFile(file) as archive:
                members = {info.filename: info for info in archive.infolist()}
                for key in keys:
                    if f"{key}.npy" in members:
                        arrays[key] = Stored(archive, members[f"{key}.npy"], size).read()
        except _ArrayError as error:
            raise ValueError(f"{path}: {error}") from None
        except MemoryError:
            raise
        # Damage surfaces as a dozen kinds of exception from zipfile, zlib and NumPy's parser.
        except Exception as error:
            raise ValueError(f"{path}: not an .npz file, or a damaged one ({error})") from None
    return arrays


class _ArrayError(Exception):
    """An array inside an .npz file that is refused, and why."""


class Stored:
    """One array in an archive: its shape and dtype, once what they promise is known to be there."""

    def __init__(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, size: int) -> None:
        self._archive, self._member = archive, member
        key = member.filename.removesuffix(".npy")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _ArrayError(f"{key} is compressed in a way that NumPy does not use")
        if member.file_size > _DEFLATE_LIMIT * min(member.compress_size, size):
            raise _ArrayError(
                f"{key} is damaged: {member.file_size} bytes cannot have been packed into "
                f"{member.compress_size}"
            )
        with archive.open(member) as file:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            elif version == (2, 0):
                shape, _, dtype = np.lib.format.read_array_header_2_0(file)
            else:
                raise _ArrayError(f"{key} is not an array of numbers")
            if dtype.hasobject:
                raise _ArrayError(
                    f"{key} is an array of Python objects, stored as a pickle, and pickles are not "
                    "loaded: they can run any code; convert it to numbers before writing the file, "
                    "labels by classes, y = np.unique(y, return_inverse=True)"
                )
            promised, held = math.prod(shape) * dtype.itemsize, member.file_size - file.tell()
            if promised != held:
                raise _ArrayError(
                    f"{key} is damaged: shape {shape} of {dtype} takes {promised} bytes, "
                    f"but there are {held}"
                )
        self.shape, self.dtype = shape, dtype

    def read(self) -> npt.NDArray[Any]:
        """Return the array."""
        with self._archive.open(self._member) as file:
            array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            file.read(1)  # reaching the end checks the checksum
        return array


def stored_arrays(archive: zipfile.ZipFile, size: int) -> dict[str, Stored]:
    """Return all arrays of an archive of so many bytes by name; none of them may be compressed.

    So all together are no larger than the file.
    """
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("its arrays are compressed, which those that are saved are not")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its arrays are larger than the file")
    found = {m.filename.removesuffix(".npy"): Stored(archive, m, size) for m in members}
    if len(found) < len(members):
        raise ValueError("it holds an array twice")
    return found
