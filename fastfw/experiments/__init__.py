"""Experiments: several methods, the same batches, one comparator; the paper's figures; tuning.

>>> from fastfw.experiments import compare, format_table
>>> result = compare("fashion-mnist-4k", methods=["orgfw"], trials=2)  # doctest: +SKIP
>>> print(format_table(result))  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastfw.experiments.comparison import Comparator, CompareResult, MethodResult, compare
    from fastfw.experiments.methods import METHODS, SETTINGS, Method
    from fastfw.experiments.network import NetworkComparison, compare_network
    from fastfw.experiments.network_report import format_network_table
    from fastfw.experiments.plots import regret_figure, write_regret_png
    from fastfw.experiments.presets import PRESETS
    from fastfw.experiments.report import format_table, write_regret_csv, write_summary_csv
    from fastfw.experiments.reproduction import Reproduction, reproduce
    from fastfw.experiments.tuning import GridSearch, format_grid, grid_search, write_grid_csv

__all__ = [
    "METHODS",
    "PRESETS",
    "SETTINGS",
    "Comparator",
    "CompareResult",
    "GridSearch",
    "Method",
    "MethodResult",
    "NetworkComparison",
    "Reproduction",
    "compare",
    "compare_network",
    "format_grid",
    "format_network_table",
    "format_table",
    "grid_search",
    "regret_figure",
    "reproduce",
    "write_grid_csv",
    "write_regret_csv",
    "write_regret_png",
    "write_summary_csv",
]

_HOME = {
    "METHODS": "methods",
    "PRESETS": "presets",
    "SETTINGS": "methods",
    "Method": "methods",
    "Comparator": "comparison",
    "CompareResult": "comparison",
    "MethodResult": "comparison",
    "compare": "comparison",
    "NetworkComparison": "network",
    "compare_network": "network",
    "format_network_table": "network_report",
    "format_table": "report",
    "write_regret_csv": "report",
    "write_summary_csv": "report",
    "Reproduction": "reproduction",
    "reproduce": "reproduction",
    "GridSearch": "tuning",
    "format_grid": "tuning",
    "grid_search": "tuning",
    "write_grid_csv": "tuning",
    "regret_figure": "plots",
    "write_regret_png": "plots",
}


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: the command line's help needs none of the heavy parts."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
