"""Experiments: several methods, the same batches, one comparator; the paper's figures; tuning.

>>> from fastfw.experiments import compare, format_table
>>> result = compare("fashion-mnist-4k", methods=["orgfw"], trials=2)  # doctest: +SKIP
>>> print(format_table(result))  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastfw.experiments.comparison import compare
    from fastfw.experiments.figures import regret_figure, write_regret_png
    from fastfw.experiments.methods import METHODS, PRESETS, SETTINGS, Method
    from fastfw.experiments.reproduction import reproduce
    from fastfw.experiments.results import (
        Comparator,
        CompareResult,
        GridSearch,
        MethodResult,
        NetworkComparison,
        Reproduction,
    )
    from fastfw.experiments.tables import (
        format_grid,
        format_network_table,
        format_table,
        write_grid_csv,
        write_regret_csv,
        write_summary_csv,
    )
    from fastfw.experiments.training import compare_network
    from fastfw.experiments.tuning import grid_search

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
    name: module
    for module, names in {
        "comparison": ["compare"],
        "figures": ["regret_figure", "write_regret_png"],
        "methods": ["METHODS", "PRESETS", "SETTINGS", "Method"],
        "reproduction": ["reproduce"],
        "results": [
            "Comparator", "CompareResult", "GridSearch", "MethodResult", "NetworkComparison",
            "Reproduction",
        ],
        "tables": [
            "format_grid", "format_network_table", "format_table", "write_grid_csv",
            "write_regret_csv", "write_summary_csv",
        ],
        "training": ["compare_network"],
        "tuning": ["grid_search"],
    }.items()
    for name in names
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: the command line's help needs none of the heavy parts."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
