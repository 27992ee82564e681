"""What `fastfw info` and `fastfw warmup` need to know about the machine and the kernel cache."""

import importlib
import importlib.metadata
import os
import pkgutil
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CacheState", "cache_state", "cores", "describe", "kernels", "machine", "variants"]

_PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "matplotlib", "tqdm")
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
    """Where compiled kernels are kept and how many are there.

    Parameters
    ----------
    folder : str or None
        The folder; None when nothing is cached.
    kernels : int
        How many kernels there are in the sources.
    cached : int
        How many of them have compiled code in the folder that fits the sources as they are now.
    variants : int
        How many compiled variants these have together: one for each combination of dtypes.
    writable : bool
        Whether new ones can be added.
    reason : str
        Why nothing is cached, if so.
    """

    folder: str | None
    kernels: int
    cached: int
    variants: int
    writable: bool
    reason: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        if self.folder is None:
            return f"none ({self.reason})"
        access = "writable" if self.writable else "read-only"
        return (
            f"{self.folder} ({access}; {self.cached} of {self.kernels} kernels cached, "
            f"{self.variants} variants)"
        )


def kernels() -> dict[str, Any]:
    """Import every module of kernels and return the compiled functions by name."""
    import fastfw.kernels
    from fastfw.kernels import _jit

    for module in pkgutil.iter_modules(fastfw.kernels.__path__):
        importlib.import_module(f"fastfw.kernels.{module.name}")
    return dict(_jit.dispatchers)


def variants(dispatcher: Any) -> int:
    """Return how many compiled variants of a kernel the cache holds; stale ones do not count."""
    try:
        return len(dispatcher._cache._cache_file._load_index())
    except (AttributeError, OSError):
        return 0


def cache_state() -> CacheState:
    """Look at the kernel cache without compiling anything.

    Returns
    -------
    CacheState
        The folder and what is in it.
    """
    import numba

    if numba.config.DISABLE_JIT:
        return CacheState(None, 0, 0, 0, False, "the JIT is switched off by NUMBA_DISABLE_JIT")
    found = kernels()
    folders = {kernel.stats.cache_path for kernel in found.values()} - {None}
    if not folders:
        reason = "no folder can be written; set NUMBA_CACHE_DIR to one that can"
        return CacheState(None, len(found), 0, 0, False, reason)
    folder = min(folders)
    counts = [variants(kernel) for kernel in found.values()]
    return CacheState(
        folder=folder,
        kernels=len(found),
        cached=sum(count > 0 for count in counts),
        variants=sum(counts),
        writable=os.access(folder if os.path.isdir(folder) else os.path.dirname(folder), os.W_OK),
    )


def _version(package: str) -> str:
    """Return the installed version of a package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """Return the processor's name as its maker writes it, where the system tells."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as handle:
            for line in handle:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
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
    """Return processor, cores and versions in one line, as results should say.

    Returns
    -------
    str
        Such as ``"AMD EPYC ..., 2 logical cores, Python 3.11.7, NumPy 2.4.6, Numba 0.68.1"``.
    """
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{name} {_version(name.lower())}" for name in ("NumPy", "Numba", "SciPy")]
    return f"{_processor()}, cores: {_cores()}; {', '.join(versions)}"


def describe() -> list[tuple[str, str]]:
    """Collect what a bug report should say about the machine.

    Returns
    -------
    list of (str, str)
        Names and values, in the order in which they are printed.
    """
    import llvmlite.binding
    import numba

    import fastfw

    facts = [
        ("fastfw", f"{fastfw.__version__} in {Path(fastfw.__file__).parent}"),
        ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
    ]
    facts += [(package, _version(package)) for package in _PACKAGES]
    facts += [
        ("system", platform.platform()),
        ("processor", f"{_processor()} (LLVM: {llvmlite.binding.get_host_cpu_name()})"),
        ("cores", _cores()),
        ("numba threads", str(numba.config.NUMBA_NUM_THREADS)),
        ("BLAS of numpy", _blas()),
        ("kernel cache", str(cache_state())),
        ("FASTFW_DATA", _data_folder()),
    ]
    facts += [(name, os.environ[name]) for name in _VARIABLES if name in os.environ]
    return facts
