"""Projection-free online learning: Frank-Wolfe methods with compiled kernels.

Each round a learner plays a point of a convex set, sees a batch, suffers a loss and moves by
asking the set for one of its vertices. Names are imported when they are first used, so that
``import fastfw`` is light; kernels are compiled or read from their cache at their first call.
"""

from __future__ import annotations

import os
from importlib import import_module

from fastfw._version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module `typing` takes longer to import than all of this
    import typing

# In a checkout the kernels' folder stands beside this one. An editable install knows that; Python
# started in a checkout that is not installed so finds this package first, and needs to be told.
_here = os.path.dirname(__file__)
_root = os.path.dirname(_here)
if not os.path.exists(os.path.join(_here, "kernels")) and os.path.exists(
    os.path.join(_root, "kernels", "_jit.py")
):
    __path__.append(_root)
del _here, _root

#: Where public names come from; those of sets and of methods are in the tables of two packages.
_NAMES = {
    "base_learners": "FTPL OGD RFTL BaseLearner LinearLearner",
    "learners._base": "OnlineLearner",
    "learners._engines": "EngineWarning",
    "learners._results": "FitResult Round RunResult RunSummary",
    "learners._offline": "OfflineLearner",
    "network": "OneHiddenLayer",
    "custom": "FunctionProblem problem_from_function",
    "problems": "SoftmaxRegression",
    "schedules": "power_schedule",
    "streams": """
        Batch Dataset IndexedStream LabelledStream drifting_stream epoch_stream iid_stream
        sorted_stream
    """,
    "regret": """
        BestDecision IntervalRegret RegretCurve best_fixed_decision interval_regret regret
        suboptimality
    """,
    "traces": "Trace frank_wolfe_gap log_spaced trace",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = ("datasets", "experiments", "kernels", "theory")

if TYPE_CHECKING:
    from fastfw import datasets as datasets
    from fastfw import experiments as experiments
    from fastfw import kernels as kernels
    from fastfw import theory as theory
    from fastfw.base_learners import FTPL as FTPL
    from fastfw.base_learners import OGD as OGD
    from fastfw.base_learners import RFTL as RFTL
    from fastfw.base_learners import BaseLearner as BaseLearner
    from fastfw.base_learners import LinearLearner as LinearLearner
    from fastfw.custom import FunctionProblem as FunctionProblem
    from fastfw.custom import problem_from_function as problem_from_function
    from fastfw.learners import *
    from fastfw.learners._base import OnlineLearner as OnlineLearner
    from fastfw.learners._engines import EngineWarning as EngineWarning
    from fastfw.learners._offline import OfflineLearner as OfflineLearner
    from fastfw.learners._results import *
    from fastfw.network import OneHiddenLayer as OneHiddenLayer
    from fastfw.problems import SoftmaxRegression as SoftmaxRegression
    from fastfw.regret import *
    from fastfw.schedules import power_schedule as power_schedule
    from fastfw.sets import *
    from fastfw.streams import *
    from fastfw.traces import *


def __getattr__(name: str) -> typing.Any:
    if name in _HOME:
        value = getattr(import_module(f"fastfw.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"fastfw.{name}")
    else:
        sets, learners = import_module("fastfw.sets"), import_module("fastfw.learners")
        if name == "__all__":
            value = ["__version__", *_MODULES, *_HOME, *sets.__all__, *learners.__all__]
        elif name in sets.__all__:
            value = getattr(sets, name)
        elif name in learners.__all__:
            value = getattr(learners, name)
        else:
            raise AttributeError(f"module 'fastfw' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__getattr__("__all__")))
