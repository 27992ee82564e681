"""What `fastfw info` and `fastfw warmup` need to know about the machine and the kernel cache."""

import contextlib
import importlib
import importlib.metadata
import os
import pkgutil
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "matplotlib", "platformdirs", "tqdm")
_VARIABLES = (
    "NUMBA_CACHE_DIR",
    "NUMBA_DISABLE_JIT",
    "NUMBA_CPU_NAME",
    "FASTFW_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "MKL_NUM_THREADS",
)


@dataclass(frozen=True)
class CacheState:
    """Where compiled kernels are kept and how many are there."""

    #: None when nothing is cached.
    folder: Path | None
    #: Of each kernel in the sources, how many compiled variants there are, one for each combination
    #: of dtypes.
    variants: dict[str, int]
    #: Bytes in the folder, and in those beside it that other sources or versions have filled.
    size: int = 0
    others: int = 0
    #: Whether new variants can be added.
    writable: bool = False
    #: Why nothing is cached, or not at a better place.
    reason: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        if self.folder is None:
            return f"none ({self.reason})"
        access = "writable" if self.writable else "read-only"
        cached = sum(count > 0 for count in self.variants.values())
        return (
            f"{self.folder} ({access}; {cached} of {len(self.variants)} kernels cached, "
            f"{sum(self.variants.values())} variants, {self.size / 1e6:.1f} MB"
            + (f"; {self.others / 1e6:.1f} MB beside it of other versions" if self.others else "")
            + (f"; {self.reason}" if self.reason else "")
            + ")"
        )


def _size(folder: Path) -> int:
    """Return the bytes of the files below a folder; one that goes away meanwhile does not count."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size if path.is_file() else 0
    return total


def kernels() -> dict[str, Any]:
    """Import every module of kernels and return the compiled functions by name."""
    import fastfw.kernels
    from fastfw.kernels import _jit

    for module in pkgutil.walk_packages(fastfw.kernels.__path__, "fastfw.kernels."):
        importlib.import_module(module.name)
    return dict(_jit.dispatchers)


def cache_state() -> CacheState:
    """Look at the kernel cache without compiling anything."""
    import numba

    from fastfw.kernels import _cache

    if numba.config.DISABLE_JIT:
        return CacheState(None, {}, reason="the JIT is switched off by NUMBA_DISABLE_JIT")
    folder, reason = _cache.place()
    counts = {name: len(list(found._cache.files())) for name, found in kernels().items()}
    if folder is None:
        reason = f"set NUMBA_CACHE_DIR to a folder that you alone can write: {reason}"
        return CacheState(None, counts, reason=reason)
    size = _size(folder)
    others = _size(folder.parent) - size
    return CacheState(folder, counts, size, others, os.access(folder, os.W_OK), reason)


def _version(package: str) -> str:
    """Return the installed version of a package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """Return the processor's name as its maker writes it, where the system tells."""
    with contextlib.suppress(OSError):
        known = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if found := re.search("^model name.*?:(.*)", known, re.MULTILINE):
            return found[1].strip()
    return platform.processor() or platform.machine() or "unknown"


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cores() -> str:
    """Return how many cores there are and how many this process may use."""
    total, allowed = os.cpu_count() or 1, cores()
    if allowed != total:
        return f"{total} logical, {allowed} of them for this process"
    return f"{total} logical"


def _blas() -> str:
    """Return the linear algebra library that NumPy was built with."""
    import numpy as np

    try:
        config: Any = np.show_config(mode="dicts")
        found = config["Build Dependencies"]["blas"]
    except (KeyError, TypeError):
        return "unknown"
    parts = [found.get("name"), found.get("version"), found.get("openblas configuration")]
    return ", ".join(str(part) for part in parts if part) or "unknown"


def _data_folder() -> str:
    """Say what FASTFW_DATA points at."""
    value = os.environ.get("FASTFW_DATA")
    if not value:
        return "not set (needed for data that is not embedded)"
    folder = Path(value)
    try:
        inside = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    except OSError as error:
        return f"{value} (cannot be read: {error.strerror or error})"
    return f"{value} ({', '.join(inside) or 'no folders in it'})"


def machine() -> str:
    """Return processor, cores and versions in one line, as results should say."""
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{name} {_version(name.lower())}" for name in ("NumPy", "Numba", "SciPy")]
    return f"{processor()}, cores: {_cores()}; {', '.join(versions)}"


def describe() -> list[tuple[str, str]]:
    """Collect what a bug report should say about the machine: names and values, in order."""
    import llvmlite.binding
    import numba

    return [
        ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
        *((package, _version(package)) for package in _PACKAGES),
        ("system", platform.platform()),
        ("processor", f"{processor()} (LLVM: {llvmlite.binding.get_host_cpu_name()})"),
        ("cores", _cores()),
        ("numba threads", str(numba.config.NUMBA_NUM_THREADS)),
        ("BLAS of numpy", _blas()),
        ("kernel cache", str(cache_state())),
        ("FASTFW_DATA", _data_folder()),
        *((name, os.environ[name]) for name in _VARIABLES if name in os.environ),
    ]
