"""Experiments: several methods, the same batches, one comparator.

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

__all__ = [
    "METHODS",
    "PRESETS",
    "SETTINGS",
    "Comparator",
    "CompareResult",
    "Method",
    "MethodResult",
    "NetworkComparison",
    "compare",
    "compare_network",
    "format_network_table",
    "format_table",
    "regret_figure",
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
