"""Files that are whole or absent, and what killed processes leave."""

import errno
import os
import stat
import threading
import time

import pytest

from fastfw import _files
from fastfw._files import atomic_write, open_beside, remove_abandoned
from fastfw._output import prepare_folder, remove_empty
from fastfw.experiments.trials import TrialStore

locks = pytest.mark.skipif(_files.fcntl is None, reason="locks are those of POSIX")


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_atomic_write_removes_what_it_began(tmp_path, error):
    def half():
        with atomic_write(tmp_path / "a") as handle:
            handle.write("half")
            handle.flush()
            assert len(os.listdir(tmp_path)) == 1
            raise error

    with pytest.raises(error):
        half()
    assert os.listdir(tmp_path) == []


def test_atomic_write_shows_nothing_before_the_end(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with atomic_write(path, binary=True) as handle:
        handle.write(b"new")
        handle.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(os.name == "nt", reason="permission bits are those of POSIX")
def test_atomic_write_gives_the_usual_permissions(tmp_path):
    (tmp_path / "plain").write_text("")
    with atomic_write(tmp_path / "ours"):
        pass
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "ours")}
    assert len(modes) == 1


def test_prepare_folder_makes_and_takes_away(tmp_path):
    folder = tmp_path / "a" / "b"
    made = prepare_folder(folder, ("x",))
    assert made == [folder, folder.parent]
    assert os.listdir(folder) == []
    remove_empty(made)
    assert os.listdir(tmp_path) == []


def test_prepare_folder_refuses(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    (tmp_path / "x").mkdir()
    for folder in (file, file / "below"):
        with pytest.raises(OSError):  # noqa: PT011 - the system words it
            prepare_folder(folder, ("x",))
    with pytest.raises(IsADirectoryError):
        prepare_folder(tmp_path, ("x",))
    assert sorted(os.listdir(tmp_path)) == ["file", "x"]


# --- what killed processes leave --------------------------------------------------------------


def abandoned(path):
    """Leave a temporary file as a process does that is killed while it writes `path`."""
    descriptor, temporary = open_beside(path)
    os.write(descriptor, b"half")
    os.close(descriptor)
    return temporary


@locks
def test_the_next_write_takes_away_what_a_killed_one_has_left(tmp_path):
    path = tmp_path / "a.csv"
    abandoned(path)
    abandoned(path)
    other = abandoned(tmp_path / "b.csv")
    with atomic_write(path) as handle:
        handle.write("whole")
    assert sorted(os.listdir(tmp_path)) == sorted([other.name, "a.csv"])
    assert path.read_text() == "whole"


def test_files_that_are_being_written_stay(tmp_path):
    with atomic_write(tmp_path / "a") as handle:
        handle.write("first")
        handle.flush()
        remove_abandoned(tmp_path, lambda name: True)
        with atomic_write(tmp_path / "a") as second:
            second.write("second")
        assert (tmp_path / "a").read_text() == "second"
    assert (tmp_path / "a").read_text() == "first"
    assert os.listdir(tmp_path) == ["a"]


@locks
def test_a_file_that_is_taken_for_abandoned_is_made_again(tmp_path, monkeypatch):
    flock, taken = _files.fcntl.flock, []

    def late(descriptor, operation):
        # Another process looks between the making of a file and its lock.
        if not taken:
            taken.append(True)
            remove_abandoned(tmp_path, lambda name: True)
            assert os.listdir(tmp_path) == []
        flock(descriptor, operation)

    monkeypatch.setattr(_files.fcntl, "flock", late)
    with atomic_write(tmp_path / "a") as handle:
        handle.write("whole")
    assert taken
    assert (tmp_path / "a").read_text() == "whole"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("reason", ["another machine", "no locks", "no locks at all"])
def test_where_locks_tell_nothing_age_does(tmp_path, monkeypatch, reason):
    left = abandoned(tmp_path / "a")
    if reason == "another machine":
        left = left.rename(tmp_path / left.name.replace(_files._HERE, "0" * 8))
    elif reason == "no locks at all":
        monkeypatch.setattr(_files, "fcntl", None)
    elif _files.fcntl is not None:

        def without(descriptor, operation):
            raise OSError("no locks available")

        monkeypatch.setattr(_files.fcntl, "flock", without)
    with atomic_write(tmp_path / "a"):
        pass
    assert sorted(os.listdir(tmp_path)) == sorted([left.name, "a"])
    os.utime(left, (time.time() - 90_000,) * 2)
    with atomic_write(tmp_path / "a"):
        pass
    assert os.listdir(tmp_path) == ["a"]


def test_only_ones_own_files_are_removed(tmp_path):
    store = TrialStore(tmp_path / "trials")
    store.put({"what": "tune", "method": "orgfw", "seed": 1}, {})
    store.put({"seed": 1}, {})
    kept = os.listdir(store.folder)
    others = [".x.tmp", ".a.npz.tmp", "notes.tmp", abandoned(store.folder / "other.npz").name]
    for name in others[:3]:
        (store.folder / name).touch()
    for name in kept:
        abandoned(store.folder / name)
    os.makedirs(store.folder / f".{kept[0]}.{_files._HERE}-0123456789ab.tmp")
    others.append(f".{kept[0]}.{_files._HERE}-0123456789ab.tmp")  # not a file
    store.tidy()
    if _files.fcntl is not None:
        assert sorted(os.listdir(store.folder)) == sorted([*kept, *others])
    TrialStore(tmp_path / "nowhere").tidy()


def test_several_writers_and_removers_do_not_disturb_each_other(tmp_path):
    errors = []

    def work(content):
        try:
            for _ in range(60):
                with atomic_write(tmp_path / "a") as handle:
                    handle.write(content * 1000)
                remove_abandoned(tmp_path, lambda name: True)
                assert len(set((tmp_path / "a").read_text())) == 1
                prepare_folder(tmp_path, ("a",))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert os.listdir(tmp_path) == ["a"]


def test_only_files_are_replaced(tmp_path):
    folder, link, pipe = tmp_path / "folder", tmp_path / "link", tmp_path / "pipe"
    folder.mkdir()
    with (
        pytest.raises(IsADirectoryError, match="folder is a folder, which a result cannot"),
        atomic_write(folder),
    ):
        raise AssertionError("must not be reached")
    if not hasattr(os, "mkfifo"):
        pytest.skip("no links and pipes")
    os.mkfifo(pipe)
    with (
        pytest.raises(OSError, match="pipe is no regular file, which a result cannot"),
        atomic_write(pipe),
    ):
        raise AssertionError("must not be reached")
    link.symlink_to(tmp_path / "target")
    for text in ("first", "second"):
        with atomic_write(link) as handle:
            handle.write(text)
        assert link.is_symlink()
        assert (tmp_path / "target").read_text() == text
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "link", "pipe", "target"}


def test_errors_name_the_file_that_was_wanted(tmp_path):
    with (
        pytest.raises(OSError, match=r"No space left on device: '.*result\.csv'"),
        atomic_write(tmp_path / "result.csv"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with (
        pytest.raises(FileNotFoundError, match=r"missing.result\.csv'"),
        atomic_write(tmp_path / "missing" / "result.csv"),
    ):
        raise AssertionError("must not be reached")
    assert list(tmp_path.iterdir()) == []
