"""What `fastfw info` and `fastfw warmup` need to know about the machine and the kernel cache."""

import importlib
import importlib.metadata
import os
import pkgutil
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["CacheState", "cache_state", "describe", "warm_up"]

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


def _kernels() -> dict[str, Any]:
    """Import every module of kernels and return the compiled functions by name."""
    import fastfw.kernels
    from fastfw.kernels import _jit

    for module in pkgutil.iter_modules(fastfw.kernels.__path__):
        importlib.import_module(f"fastfw.kernels.{module.name}")
    return dict(_jit.dispatchers)


def _variants(dispatcher: Any) -> int:
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
    kernels = _kernels()
    folders = {kernel.stats.cache_path for kernel in kernels.values()} - {None}
    if not folders:
        reason = "no folder can be written; set NUMBA_CACHE_DIR to one that can"
        return CacheState(None, len(kernels), 0, 0, False, reason)
    folder = min(folders)
    counts = [_variants(kernel) for kernel in kernels.values()]
    return CacheState(
        folder=folder,
        kernels=len(kernels),
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


def _cores() -> str:
    """Return how many cores there are and how many this process may use."""
    total = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
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


def warm_up(progress: Callable[[int, int, str], None] | None = None) -> int:
    """Compile every kernel for float64 and float32, so that later runs find them in the cache.

    Parameters
    ----------
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each step and once at the end.

    Returns
    -------
    int
        How many steps were made.

    Notes
    -----
    Every method learns for a few rounds on a handful of rows, alone and in compiled runs, by both
    engines, with sub-batches and whole batches; a base learner plays on its own and a comparator is
    computed. These are the very calls that real runs make, so that exactly the variants that
    they need are compiled.
    """
    import numpy as np
    from scipy.sparse import csr_array

    import fastfw
    from fastfw.experiments.methods import METHODS

    X = np.random.default_rng(0).random((12, 5))
    y = np.arange(12) % 3
    problem = fastfw.SoftmaxRegression(n_features=5, n_classes=3)
    ball = fastfw.RowL1Ball(shape=(3, 5), radius=1.0)

    def find_best(data: Any) -> None:
        best = fastfw.best_fixed_decision(problem, ball, data.X, data.y, tol=0.1)
        problem.loss(best.decision, data)

    def learn(data: Any, method: Any, **options: Any) -> None:
        stream = fastfw.iid_stream(data, batch_size=4, rounds=3, seed=0)
        learner = method.build(problem, ball, rounds=6, seed=0, **options)
        for batch in stream:
            learner.observe(batch)
            learner.observe((batch.X, batch.y))
        learner._engine.arrays()  # what `save` writes is computed here
        method.build(problem, ball, rounds=3, seed=0, **options).run(stream)

    def learn_in_steps(data: Any) -> None:
        learner = fastfw.MORGFW(problem, ball, rounds=2, sub_batch_size=2, engine="steps")
        learner.observe(data)
        play = fastfw.FTPL().on(ball, rounds=2, dtype=data.dtype)
        play.observe(np.asarray(play.play()))

    def train_network(data: Any) -> None:
        network = fastfw.OneHiddenLayer(n_features=5, n_hidden=2, n_classes=3)
        M = network.l1_balls(ties="random")
        stream = fastfw.iid_stream(data, batch_size=4, rounds=3, seed=0)
        for method in (fastfw.ORGFW, fastfw.RegularizedOFW, fastfw.OFW, fastfw.OAW):
            learner: Any = method(network, M)
            learner.run(stream)
            learner.observe((data.X, data.y))
            learner._engine.arrays()
        network.loss(M.start(), data)

    def learn_offline(data: Any) -> None:
        network = fastfw.OneHiddenLayer(n_features=5, n_hidden=2, n_classes=3)
        for method in (fastfw.SVRF, fastfw.SpiderFW):
            method(problem, ball).fit(data, iterations=3)
            method(network, network.l1_balls()).fit(data, iterations=3)

    def move(dtype: Any) -> None:
        from fastfw.kernels import function

        fastfw.FlowPolytope([(0, 1)], 0, 1).lmo([1.0])
        kernels: tuple[Any, ...] = (function.l1_move, function.simplex_move)
        for own in kernels:
            own(np.ones((1, 2), dtype), 1.0, 0.5, np.ones((1, 2), dtype))

    def read(data: Any) -> None:
        stream = fastfw.iid_stream(data, batch_size=4, rounds=3, seed=0)
        for kind in (fastfw.ORGFW, fastfw.OSFW):
            kind(problem, ball).run(stream)
        problem.loss(ball.start(), data)
        problem.gradient(ball.start(), data)

    steps: list[tuple[str, Callable[[], None]]] = []
    for dtype in (np.float64, np.float32):
        name = np.dtype(dtype).name
        dense = fastfw.Dataset(X.astype(dtype), y)
        steps.append((f"comparator, {name}", partial(find_best, dense)))
        steps.append((f"sets, {name}", partial(move, dtype)))
        csr = fastfw.Dataset(csr_array((X * (X > 0.5)).astype(dtype)), y)
        steps.append((f"sparse features, {name}", partial(read, csr)))
        coded = fastfw.Dataset((255 * X).astype(np.uint8), y, scale=1 / 255).astype(dtype)
        steps.append((f"bytes, {name}", partial(read, coded)))
        for method in METHODS:
            steps.append((f"{method.label}, {name}", partial(learn, dense, method)))
            if method.meta:
                # Whole batches that are mostly zeros go another way than dense ones.
                sparse = fastfw.Dataset((X * (X > 0.8)).astype(dtype), y)
                for data in (dense, sparse):
                    whole = partial(learn, data, method, sub_batch_size=None)
                    steps.append((f"{method.label}, whole batches, {name}", whole))
        steps.append((f"steps engine, {name}", partial(learn_in_steps, dense)))
        steps.append((f"network, {name}", partial(train_network, dense)))
        steps.append((f"offline methods, {name}", partial(learn_offline, dense)))
    for done, (what, step) in enumerate(steps):
        if progress is not None:
            progress(done, len(steps), what)
        step()
    if progress is not None:
        progress(len(steps), len(steps), "done")
    return len(steps)
