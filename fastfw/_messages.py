"""Pieces of untrusted files in messages."""

import reprlib

__all__ = ["shown"]


def shown(value: object, limit: int = 80) -> str:
    r"""Return a value for a message: short, and without control codes, whatever it is.

    >>> shown("a\x1b[31m"), shown("x" * 100, 8)
    ('a\\x1b[31m', 'xxxxx...')
    """
    text = ascii(value if isinstance(value, str) else reprlib.repr(value))[1:-1]
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
