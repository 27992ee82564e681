"""Schedules: values, what counts as one, and their description in files."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastfw as fw
import reference as ref
from fastfw import schedules
from sizes import quick


@quick
@given(st.floats(1e-3, 1e3), st.floats(0.0, 4.0), st.integers(1, 10**7))
def test_power_schedule(c, e, t):
    value = fw.power_schedule(c, e)(t)
    assert value == ref.power_schedule(c, e)(t)
    assert 0.0 < value <= 1.0


def test_first_values():
    schedule = fw.power_schedule(2.0, 0.5)
    assert [schedule(t) for t in (1, 3, 8, 15)] == [1.0, 1.0, 2 / 3, 0.5]
    assert fw.power_schedule(0.25, 0.0)(1) == fw.power_schedule(0.25, 0)(10**9) == 0.25


def test_an_offset_takes_the_place_of_one():
    schedule = fw.power_schedule(4.0, 2 / 3, offset=8.0)
    found = [min(4.0 / (t + 8.0) ** (2 / 3), 1.0) for t in range(1, 40)]
    assert schedule.over(np.arange(1, 40)).tolist() == found == [*map(schedule, range(1, 40))]
    for own in (schedule, fw.power_schedule(4.0, 2 / 3)):
        assert schedules.from_json(json.loads(json.dumps(schedules.to_json(own))), "step") == own
    assert schedules.to_json(fw.power_schedule(2.0, 1.0, 1)) == {"c": 2.0, "e": 1.0}


def test_steep_schedules_reach_zero_without_an_error():
    """A power too large for a float is a step of size zero, not a run that ends in round 1,300."""
    assert fw.power_schedule(1.0, 100.0)(1300) == 0.0
    assert fw.power_schedule(1.0, 2000.0)(1) == 0.0
    assert fw.power_schedule(1.0, 1.0)(10**400) == 0.0


@pytest.mark.parametrize(
    ("c", "e", "error", "message"),
    [
        (0.0, 1.0, ValueError, "c must be a positive number"),
        (-1.0, 1.0, ValueError, "c must be"),
        (math.nan, 1.0, ValueError, "c must be"),
        (math.inf, 1.0, ValueError, "c must be"),
        ("1", 1.0, TypeError, "c must be"),
        (True, 1.0, TypeError, "c must be"),
        (1.0, -0.5, ValueError, "e must be a number >= 0"),
        (1.0, math.nan, ValueError, "e must be"),
        (1.0, None, TypeError, "e must be"),
    ],
)
def test_bad_arguments(c, e, error, message):
    with pytest.raises(error, match=message):
        fw.power_schedule(c, e)


def test_numbers_are_constant_schedules():
    for number in (0, 1, 0.5, np.float32(0.5), np.int64(1), np.array(0.25)):
        schedule = schedules.as_schedule(number, "step")
        assert schedule(1) == schedule(10**6) == float(number)
        assert type(schedules.value_at(schedule, 3, "step")) is float


@pytest.mark.parametrize("number", [-0.1, 1.5, math.nan, math.inf, 2])
def test_numbers_outside_the_interval(number):
    with pytest.raises(ValueError, match=r"step must be a number in \[0, 1\]"):
        schedules.as_schedule(number, "step")


@pytest.mark.parametrize("thing", ["0.5", None, [0.5], True, 1j, {}])
def test_things_that_are_no_schedules(thing):
    with pytest.raises(TypeError, match=r"step must be a number in \[0, 1\] or a callable"):
        schedules.as_schedule(thing, "step")


@pytest.mark.parametrize("value", [-0.1, 1.0001, math.nan, math.inf])
def test_callables_are_watched(value):
    with pytest.raises(ValueError, match=r"step in round 7 must be a number in \[0, 1\]"):
        schedules.value_at(lambda t: value, 7, "step")


@pytest.mark.parametrize("value", [None, "1", True, [0.5], 1j])
def test_callables_must_return_numbers(value):
    with pytest.raises(TypeError, match="step in round 7"):
        schedules.value_at(lambda t: value, 7, "step")


def test_schedules_go_through_a_file():
    for schedule in (
        fw.power_schedule(0.1, 2 / 3),
        schedules.as_schedule(0.3, "step"),
        fw.power_schedule(1 / 3, 1 / 7),
    ):
        text = json.dumps(schedules.to_json(schedule))
        assert schedules.from_json(json.loads(text), "step") == schedule
    assert schedules.to_json(lambda t: 0.5) is None


@pytest.mark.parametrize(
    "described",
    [{}, {"c": 1.0}, {"c": 1.0, "e": 1.0, "f": 1.0}, {"value": 2.0}, {"c": -1.0, "e": 0.0}, [1.0]],
)
def test_bad_descriptions(described):
    with pytest.raises(ValueError, match=r"step|c must"):
        schedules.from_json(described, "step")


def test_schedules_are_values():
    assert fw.power_schedule(1, 1) == fw.power_schedule(1.0, 1.0)
    assert hash(fw.power_schedule(1, 1)) == hash(fw.power_schedule(1.0, 1.0))
    assert repr(fw.power_schedule(1, 0.5)) == "PowerSchedule(c=1.0, e=0.5, offset=1.0)"
