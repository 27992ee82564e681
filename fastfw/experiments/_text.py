"""How numbers stand in tables and in CSV files."""

import math

__all__ = ["counted", "fixed_or_dash", "number_or_nothing"]


def counted(number: int, noun: str) -> str:
    """Return a number and its noun.

    >>> counted(1, "trial"), counted(6, "trial")
    ('1 trial', '6 trials')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def fixed_or_dash(value: float, decimals: int) -> str:
    """Return a number for a table; what is not known, such as one trial's error, is a dash.

    >>> fixed_or_dash(0.125, 2), fixed_or_dash(float("nan"), 2)
    ('0.12', '-')
    """
    return "-" if math.isnan(value) else f"{value:.{decimals}f}"


def number_or_nothing(value: float) -> float | str:
    """Return a number for a CSV file, where a cell is left empty for what is not known.

    >>> number_or_nothing(0.5), number_or_nothing(float("nan"))
    (0.5, '')
    """
    return "" if math.isnan(value) else value
