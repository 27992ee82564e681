"""Folders for results: checked before the work, taken away again if nothing comes of it."""

import contextlib
import os
from pathlib import Path

from fastfw._files import open_beside

__all__ = ["prepare_folder", "remove_empty"]


def prepare_folder(folder: str | os.PathLike[str], names: tuple[str, ...]) -> list[Path]:
    """Make `folder` where it is missing and prove that the files `names` can be written in it.

    Parameters
    ----------
    folder : path-like
        Where result files will go.
    names : tuple of str
        The names of those files.

    Returns
    -------
    list of Path
        The folders that were made, innermost first, so that a run that fails can take away what
        it left empty.

    Raises
    ------
    OSError
        If the folder cannot be made, is a file, or refuses new files, or if one of the names is
        taken by a folder. What was made before the error is removed again.
    """
    folder = Path(folder)
    missing = []
    for parent in (folder, *folder.parents):
        if parent.exists():
            break
        missing.append(parent)
    made: list[Path] = []
    try:
        for parent in reversed(missing):
            parent.mkdir(exist_ok=True)
            made.insert(0, parent)
        if not folder.is_dir():
            raise NotADirectoryError(f"{str(folder)!r} is a file, not a folder")
        for name in names:
            if (folder / name).is_dir():
                raise IsADirectoryError(f"{str(folder / name)!r} is a folder, not a file")
        # Only a write tells: permission bits say nothing about full disks, read-only mounts, root.
        descriptor, temporary = open_beside(folder / names[0])
        os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):  # another process has tidied up
            os.unlink(temporary)
    except OSError:
        remove_empty(made)
        raise
    return made


def remove_empty(folders: list[Path]) -> None:
    """Remove `folders` (innermost first) as far as they are empty."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
