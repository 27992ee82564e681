"""Experiments: several methods, the same batches, one comparator; the paper's figures; tuning.

>>> from fastfw.experiments import compare, format_table
>>> result = compare("fashion-mnist-4k", methods=["orgfw"], trials=2)  # doctest: +SKIP
>>> print(format_table(result))  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastfw.experiments.comparison import *
    from fastfw.experiments.figures import *
    from fastfw.experiments.methods import *
    from fastfw.experiments.reproduction import *
    from fastfw.experiments.results import *
    from fastfw.experiments.tables import *
    from fastfw.experiments.training import *
    from fastfw.experiments.tuning import *

#: Where public names come from.
_NAMES = {
    "comparison": "compare",
    "figures": "regret_figure write_regret_png",
    "methods": "METHODS PRESETS SETTINGS Method",
    "reproduction": "reproduce",
    "results": "Comparator CompareResult GridSearch MethodResult NetworkComparison Reproduction",
    "tables": """
        format_grid format_network_table format_table write_grid_csv write_regret_csv
        write_summary_csv
    """,
    "training": "compare_network",
    "tuning": "grid_search",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: the command line's help needs none of the heavy parts."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
