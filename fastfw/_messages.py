"""Names and pieces of untrusted files in what people read."""

import reprlib


def printable(text: str) -> str:
    r"""Return a text whose control codes, ends of lines aside, are written out.

    Names of files may hold codes that colour a terminal or move its cursor.

    >>> printable("a\x1b[31m\nnaïve")
    'a\\x1b[31m\nnaïve'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def escape(value: object, limit: int = 80) -> str:
    r"""Return a value for a message: short, and without control codes, whatever it is.

    >>> escape("a\x1b[31m"), escape("x" * 100, 8)
    ('a\\x1b[31m', 'xxxxx...')
    """
    text = ascii(value if isinstance(value, str) else reprlib.repr(value))[1:-1]
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
