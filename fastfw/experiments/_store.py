"""Finished trials on disk, so that work that was stopped goes on where it was.

A trial is a file of arrays whose name ends in a digest of all that determines its outcome. It is
written whole or not at all; whoever kills the process loses at most the trial it is at. Another
setting, other data or another version of fastfw has another digest, so that no stale trial is
taken for a new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fastfw
from fastfw._csr import csr_parts, is_sparse
from fastfw._files import atomic_write, remove_abandoned
from fastfw.streams import Dataset

__all__ = ["Arrays", "TrialStore", "fingerprint"]

Arrays = dict[str, npt.NDArray[Any]]

_SETTINGS = "settings"
_NAME = re.compile(r"([^/]+-)?[0-9a-f]{20}\.npz")


def fingerprint(data: Dataset) -> str:
    """Return a digest of features and labels.

    Examples
    --------
    >>> a, b = Dataset(np.eye(2), [0, 1]), Dataset(np.eye(2), [1, 0])
    >>> fingerprint(a) == fingerprint(Dataset(np.eye(2), [0, 1])), fingerprint(a) == fingerprint(b)
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    parts = csr_parts(data.X) if is_sparse(data.X) else (data.X,)
    for array in (*parts, data.y):
        digest.update(f"{array.shape} {array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


class TrialStore:
    """A folder of finished trials.

    Parameters
    ----------
    folder : path-like
        Made when the first trial is kept.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    def path(self, settings: Mapping[str, Any]) -> Path:
        """Return the file of a trial.

        Parameters
        ----------
        settings : mapping
            All that determines the outcome, in types that JSON knows. ``what`` and ``method``, if
            there, also begin the file's name, for people.
        """
        digest = hashlib.blake2b(self._text(settings).encode(), digest_size=10).hexdigest()
        words = [str(settings[key]) for key in ("what", "method", "seed") if key in settings]
        return self.folder / f"{'-'.join([*words, digest])}.npz"

    def tidy(self) -> None:
        """Remove what killed processes have left of trials that they were about to keep."""
        remove_abandoned(self.folder, lambda name: _NAME.fullmatch(name) is not None)

    def get(self, settings: Mapping[str, Any]) -> Arrays | None:
        """Return the arrays of a trial, or None where it is not kept or its file is damaged."""
        try:
            with self.path(settings).open("rb") as handle:
                file = np.load(handle, allow_pickle=False)
                arrays = {name: file[name] for name in file.files}
        except FileNotFoundError:
            return None
        # Damage surfaces as a dozen kinds of exception; the trial is simply done again.
        except Exception:
            return None
        known = arrays.pop(_SETTINGS, None)
        if known is None or str(known) != self._text(settings):
            return None
        return arrays

    def put(self, settings: Mapping[str, Any], arrays: Mapping[str, npt.ArrayLike]) -> None:
        """Keep a finished trial; the file appears whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = np.array(self._text(settings))
        contents: dict[str, Any] = {**arrays, _SETTINGS: text}
        with atomic_write(self.path(settings), binary=True) as file:
            np.savez(file, **contents)

    @staticmethod
    def _text(settings: Mapping[str, Any]) -> str:
        return json.dumps({**settings, "fastfw": fastfw.__version__}, sort_keys=True)
