"""Plain data and arrays of bytes from pickles, without running anything that a pickle asks for.

A pickle is a program for a small machine: instructions of one byte push values and put them
together, and a few of them name any function of any module and call it. `unpickle` is a machine of
its own that has no such instruction. It knows the names of what stands for arrays and bytes in
pickles of Python 2 and 3 and of NumPy 1 and 2, and answers them with descriptions of arrays;
nothing is imported or called, and every other name is refused. Memory is in proportion to the file:
no length is believed that the file does not have.
"""

from __future__ import annotations

import codecs
import pickle
import struct
from collections.abc import Callable
from typing import IO, Any

from fastfw._messages import shown

__all__ = ["ArrayOfBytes", "Refused", "unpickle"]


class Refused(Exception):
    """What a pickle asks for and does not get."""


class _Known:
    """One of the names that are known; it is never more than a name."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Dtype:
    """Stands for the dtype of unsigned bytes."""


class ArrayOfBytes:
    """What a pickle says of an array: ``(version, shape, dtype, Fortran order, content)``.

    Parameters
    ----------
    state : object
        As it is in the file, not checked.
    """

    def __init__(self, state: object = None) -> None:
        self.state = state

    def parts(self) -> tuple[object, bool, bytes | bytearray]:
        """Return shape, whether the order is Fortran's, and content.

        Raises
        ------
        ValueError
            If these are not an array of bytes.
        """
        if not (isinstance(self.state, tuple) and len(self.state) == 5):
            raise ValueError("an array without content")
        version, shape, dtype, fortran, content = self.state
        if version != 1 or not isinstance(fortran, bool | int):
            raise ValueError("an array of unknown layout")
        if not isinstance(dtype, _Dtype) or not isinstance(content, bytes | bytearray):
            raise ValueError("not an array of bytes")
        return shape, bool(fortran), content


_KNOWN = {
    (module, name): _Known(name)
    for module, name in (
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy.core.numeric", "_frombuffer"),
        ("numpy._core.numeric", "_frombuffer"),
        # by which Python 3 writes bytes, and no bytes, into older kinds of pickles
        ("_codecs", "encode"),
        ("__builtin__", "bytes"),
    )
}


def unpickle(file: IO[bytes], size: int) -> object:
    """Read the value of a pickle that is all of a file.

    Parameters
    ----------
    file : binary file
        Open for reading, at its beginning.
    size : int
        How many bytes it has.

    Returns
    -------
    object
        Made of dict, list, tuple, bytes, bytearray, str, int, float, bool, None and `ArrayOfBytes`.

    Raises
    ------
    Refused
        If the file asks for anything that could run code; the message says what.
    Exception
        Of several kinds, if it is damaged or not a pickle.
    """
    return _Machine(file, size).run()


class _Machine:
    """The stack, the marks on it and the memo of a pickle that is being read."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file = file
        self.left = size  # bytes of the file
        self.frame = 0  # bytes of the frame that is being read
        self.encoded = size  # bytes that text may still be encoded to: it is part of the file
        self.stack: list[Any] = []
        self.marked: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> object:
        """Follow the instructions to the end."""
        while (code := self.take(1)) != pickle.STOP:
            try:
                step = _STEPS[code]
            except KeyError:
                raise ValueError(
                    f"byte {code.hex()} before the last {self.left} is no instruction for data"
                ) from None
            step(self)
        if self.left:
            raise ValueError(f"{self.left} bytes follow the end of the pickle")
        if len(self.stack) != 1 or self.marked:
            raise ValueError("ends with something unfinished")
        return self.stack[0]

    # what instructions are made of

    def take(self, count: int) -> bytes:
        """Read so many bytes."""
        if not 0 <= count <= self.left:
            raise ValueError(f"cut short: {count} bytes are promised where {self.left} are left")
        content = self.file.read(count)
        if len(content) != count:
            raise ValueError("changed while it was read")
        self.passed(count)
        return content

    def line(self) -> bytes:
        """Read to the end of the line."""
        content = self.file.readline(self.left)
        self.passed(len(content))
        if content[-1:] != b"\n":
            raise ValueError("cut short within a line")
        return content[:-1]

    def passed(self, count: int) -> None:
        """Take note of bytes that have been read."""
        self.left -= count
        if self.frame:
            self.frame -= count
            if self.frame < 0:
                raise ValueError("goes on beyond the end of a frame")

    def number(self, layout: str) -> Any:
        """Read a number in binary form."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def since_mark(self) -> list[Any]:
        """Take everything down to the last mark off the stack."""
        if not self.marked:
            raise ValueError("ends a group of values that it has not begun")
        items, self.stack = self.stack, self.marked.pop()
        return items

    def last(self, count: int) -> list[Any]:
        """Take the topmost values off the stack."""
        if len(self.stack) < count:
            raise ValueError("takes a value where there is none")
        items = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return items

    def top(self) -> Any:
        """Return the topmost value."""
        if not self.stack:
            raise ValueError("takes a value where there is none")
        return self.stack[-1]

    # instructions

    def begin_frame(self, count: int) -> None:
        """Begin a stretch of instructions whose length is known."""
        if self.frame or count > self.left:
            raise ValueError("a frame that is cut short")
        self.frame = count

    def name(self, module: object, name: object) -> None:
        """Push one of the known names."""
        if not (isinstance(module, str) and isinstance(name, str)):
            raise ValueError("a name that is no text")
        found = _KNOWN.get((module, name))
        if found is None:
            raise Refused(shown(f"{module}.{name}"))
        self.stack.append(found)

    def call(self) -> None:
        """Do what a known name stands for."""
        function, arguments = self.last(2)
        if not isinstance(function, _Known):
            raise Refused(f"a call of {shown(type(function).__name__)}")
        if not isinstance(arguments, tuple):
            raise ValueError("a call whose arguments are no tuple")
        made: object
        match function.name, *arguments:
            case ("_reconstruct", _Known(name="ndarray"), (0,), "b" | b"b"):
                made = ArrayOfBytes()
            case ("_frombuffer", content, dtype, shape, ("C" | "F") as order):
                made = ArrayOfBytes((1, shape, dtype, order == "F", content))
            case ("dtype", code) | ("dtype", code, int(), int()):
                plain = code.decode("latin-1") if isinstance(code, bytes) else code
                if plain not in ("u1", "|u1", "uint8"):
                    raise ValueError(
                        f"an array of type '{shown(plain)}', where bytes (u1) are wanted"
                    )
                made = _Dtype()
            case ("encode", str(text), "latin1"):
                self.encoded -= len(text)
                if self.encoded < 0:
                    raise ValueError("more bytes than the file has")
                made = text.encode("latin-1")
            case ("bytes",):
                made = b""
            case _:
                raise ValueError(f"{function.name} with arguments that no array has")
        self.stack.append(made)

    def build(self) -> None:
        """Give an array its content; there is nothing to know of a dtype of bytes."""
        target, state = self.last(2)
        if isinstance(target, ArrayOfBytes):
            target.state = state
        elif not isinstance(target, _Dtype):
            raise Refused(f"attributes of {shown(type(target).__name__)}")
        elif not (isinstance(state, tuple) and len(state) == 8 and state[2:5] == (None,) * 3):
            raise ValueError("bytes with fields")
        self.stack.append(target)

    def keep(self, index: int) -> None:
        """Put the topmost value into the memo."""
        self.memo[index] = self.top()

    def again(self, index: int) -> None:
        """Push a value of the memo."""
        if index not in self.memo:
            raise ValueError("refers to a value that it has not stored")
        self.stack.append(self.memo[index])

    def extend(self, items: list[Any]) -> None:
        """Add values to the list on top."""
        target = self.top()
        if type(target) is not list:
            raise ValueError("adds to a list where there is none")
        target.extend(items)

    def update(self, items: list[Any]) -> None:
        """Add keys and values to the dictionary on top."""
        target = self.top()
        if type(target) is not dict or len(items) % 2:
            raise ValueError("adds to a dictionary where there is none")
        for key, value in zip(items[::2], items[1::2], strict=True):
            # Other keys may take forever to be compared, or more stack than there is.
            if type(key) not in (bytes, str):
                raise ValueError("a dictionary with keys that are not text")
            target[key] = value

    def update_new(self, items: list[Any]) -> None:
        """Push a dictionary with these keys and values."""
        self.stack.append({})
        self.update(items)

    def mark(self) -> None:
        """Begin a group of values."""
        self.marked.append(self.stack)
        self.stack = []

    def quoted(self) -> bytes:
        """Read a string of Python 2 between quotes."""
        text = self.line()
        if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in (b"'", b'"'):
            raise ValueError("a string without quotes")
        return codecs.escape_decode(text[1:-1])[0]

    def whole(self) -> int | bool:
        """Read a number in decimal form, or a truth value of the oldest kind."""
        text = self.line()
        return text == b"01" if text in (b"00", b"01") else int(text)


def _push(read: Callable[[_Machine], object]) -> Callable[[_Machine], None]:
    """Make the instruction that pushes a value."""

    def push(machine: _Machine) -> None:
        value = read(machine)  # before the stack is looked at: reading may change it
        machine.stack.append(value)

    return push


def _sized(layout: str, read: Callable[[bytes], object] = bytes) -> Callable[[_Machine], None]:
    """Make the instruction that pushes a value whose length comes first."""
    return _push(lambda m: read(m.take(m.number(layout))))


def _utf8(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")


def _long(content: bytes) -> int:
    return int.from_bytes(content, "little", signed=True)


def _refuse(what: str) -> Callable[[_Machine], None]:
    """Make the instruction that is not followed."""

    def refuse(machine: _Machine) -> None:
        raise Refused(what)

    return refuse


def _instance(machine: _Machine) -> None:
    """Refuse an object of a class that is named here."""
    module, name = machine.line().decode("latin-1"), machine.line().decode("latin-1")
    raise Refused(f"an object of {shown(f'{module}.{name}')}")


def _extension(layout: str) -> Callable[[_Machine], None]:
    """Make the instruction for what programs register with `copyreg`, which is not looked up."""

    def refuse(machine: _Machine) -> None:
        raise Refused(f"the object registered under number {machine.number(layout)}")

    return refuse


def _protocol(machine: _Machine) -> None:
    """Read the version, which changes nothing."""
    protocol = machine.take(1)[0]
    if protocol > 5:
        raise ValueError(f"protocol {protocol} of pickle, which is unknown")


_STEPS: dict[bytes, Callable[[_Machine], None]] = {
    pickle.PROTO: _protocol,
    pickle.FRAME: lambda m: m.begin_frame(m.number("<Q")),
    pickle.MARK: _Machine.mark,
    # numbers
    pickle.NONE: _push(lambda m: None),
    pickle.NEWTRUE: _push(lambda m: True),
    pickle.NEWFALSE: _push(lambda m: False),
    pickle.INT: _push(_Machine.whole),
    pickle.LONG: _push(lambda m: int(m.line().removesuffix(b"L"))),
    pickle.BININT: _push(lambda m: m.number("<i")),
    pickle.BININT1: _push(lambda m: m.number("<B")),
    pickle.BININT2: _push(lambda m: m.number("<H")),
    pickle.LONG1: _sized("<B", _long),
    pickle.LONG4: _sized("<i", _long),
    pickle.FLOAT: _push(lambda m: float(m.line())),
    pickle.BINFLOAT: _push(lambda m: m.number(">d")),
    # bytes and text
    pickle.STRING: _push(_Machine.quoted),
    pickle.BINSTRING: _sized("<i"),
    pickle.SHORT_BINSTRING: _sized("<B"),
    pickle.BINBYTES: _sized("<I"),
    pickle.SHORT_BINBYTES: _sized("<B"),
    pickle.BINBYTES8: _sized("<Q"),
    pickle.BYTEARRAY8: _sized("<Q", bytearray),
    pickle.UNICODE: _push(lambda m: m.line().decode("raw-unicode-escape")),
    pickle.BINUNICODE: _sized("<I", _utf8),
    pickle.SHORT_BINUNICODE: _sized("<B", _utf8),
    pickle.BINUNICODE8: _sized("<Q", _utf8),
    # tuples, lists, dictionaries
    pickle.EMPTY_TUPLE: _push(lambda m: ()),
    pickle.TUPLE: _push(lambda m: tuple(m.since_mark())),
    pickle.TUPLE1: _push(lambda m: tuple(m.last(1))),
    pickle.TUPLE2: _push(lambda m: tuple(m.last(2))),
    pickle.TUPLE3: _push(lambda m: tuple(m.last(3))),
    pickle.EMPTY_LIST: _push(lambda m: []),
    pickle.LIST: _push(_Machine.since_mark),
    pickle.APPEND: lambda m: m.extend(m.last(1)),
    pickle.APPENDS: lambda m: m.extend(m.since_mark()),
    pickle.EMPTY_DICT: _push(lambda m: {}),
    pickle.DICT: lambda m: m.update_new(m.since_mark()),
    pickle.SETITEM: lambda m: m.update(m.last(2)),
    pickle.SETITEMS: lambda m: m.update(m.since_mark()),
    # the memo
    pickle.PUT: lambda m: m.keep(int(m.line())),
    pickle.BINPUT: lambda m: m.keep(m.number("<B")),
    pickle.LONG_BINPUT: lambda m: m.keep(m.number("<I")),
    pickle.MEMOIZE: lambda m: m.keep(len(m.memo)),
    pickle.GET: lambda m: m.again(int(m.line())),
    pickle.BINGET: lambda m: m.again(m.number("<B")),
    pickle.LONG_BINGET: lambda m: m.again(m.number("<I")),
    # names and what is done with them
    pickle.GLOBAL: lambda m: m.name(m.line().decode("latin-1"), m.line().decode("latin-1")),
    pickle.STACK_GLOBAL: lambda m: m.name(*m.last(2)),
    pickle.REDUCE: _Machine.call,
    pickle.BUILD: _Machine.build,
    # what a pickle of plain data never has
    pickle.INST: _instance,
    pickle.OBJ: _refuse("an object of a class"),
    pickle.NEWOBJ: _refuse("a new object of a class"),
    pickle.NEWOBJ_EX: _refuse("a new object of a class, with named arguments"),
    pickle.PERSID: _refuse("an object outside of the file"),
    pickle.BINPERSID: _refuse("an object outside of the file"),
    pickle.NEXT_BUFFER: _refuse("a buffer outside of the file"),
    pickle.READONLY_BUFFER: _refuse("a buffer outside of the file"),
    pickle.EXT1: _extension("<B"),
    pickle.EXT2: _extension("<H"),
    pickle.EXT4: _extension("<i"),
}
