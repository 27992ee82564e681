"""The table of methods: a row for each, from which all that lists methods takes them.

Public names, commands, comparisons, warm-up, the reference and the contract's tests follow from a
row here, and from the line for type checkers. A learner's module is named after its class:
``strongly_convex_ofw`` has `StronglyConvexOFW`. It is imported when it is first used; nothing heavy
is here, so that the command line can list the methods at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastfw.learners._method import SETTINGS, Method, learner_class

if TYPE_CHECKING:
    from fastfw.learners.meta_frank_wolfe import MetaFrankWolfe as MetaFrankWolfe
    from fastfw.learners.morgfw import MORGFW as MORGFW
    from fastfw.learners.oaw import OAW as OAW
    from fastfw.learners.ofw import OFW as OFW
    from fastfw.learners.orgfw import ORGFW as ORGFW
    from fastfw.learners.osfw import OSFW as OSFW
    from fastfw.learners.ospf import OSPF as OSPF
    from fastfw.learners.regularized_ofw import RegularizedOFW as RegularizedOFW
    from fastfw.learners.spider_fw import SpiderFW as SpiderFW
    from fastfw.learners.strongly_convex_ofw import StronglyConvexOFW as StronglyConvexOFW
    from fastfw.learners.svrf import SVRF as SVRF

TABLE = (
    Method(
        "orgfw", "ORGFW", "ORGFW", ("stochastic",), ("stochastic",), momentum=True, gradients="2"
    ),
    Method(
        "morgfw", "MORGFW", "MORGFW", ("adversarial",), ("adversarial",),
        momentum=True, rounds=True, scale=True, meta=True,
    ),
    Method("osfw", "OSFW", "OSFW", ("stochastic",), ("stochastic",), momentum=True),
    Method("ofw", "OFW", "OFW", SETTINGS, ("adversarial",), gradients="t"),
    Method(
        "regularized-ofw", "RegularizedOFW", "RegularizedOFW", ("adversarial",), ("adversarial",),
        ("rofw", "regularised-ofw"), rounds=True, scale=True,
    ),
    Method("oaw", "OAW", "OAW", ("stochastic",), gradients="t"),
    Method(
        "metafw", "MetaFrankWolfe", "MetaFrankWolfe", ("adversarial",),
        momentum=True, rounds=True, scale=True, meta=True,
    ),
    Method(
        "ofw-ls", "OFW-LS", "RegularizedOFW", ("adversarial",), aliases=("line-search",),
        step=False, rounds=True, scale=True, options=(("step", "line-search"),),
    ),
    # Losses of comparisons are not strongly convex: the number stands for a regulariser.
    Method(
        "sc-ofw", "SC-OFW", "StronglyConvexOFW", aliases=("strongly-convex-ofw",),
        step=False, options=(("strong_convexity", 0.1),),
    ),
    Method("ospf", "OSPF", "OSPF", ("adversarial",), step=False, rounds=True, scale=True),
    Method("svrf", "SVRF", "SVRF", gradients="epochs"),
    Method("spiderfw", "SPIDER-FW", "SpiderFW", gradients="epochs"),
)  # fmt: skip
"""Every method, in the order in which help texts list them."""

_LEARNERS = list(dict.fromkeys(method.learner for method in TABLE))
if not TYPE_CHECKING:  # which go by the names above
    __all__ = _LEARNERS


def __getattr__(name: str) -> Any:
    """Load a learner's class when it is first used."""
    if name not in _LEARNERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return learner_class(name)
