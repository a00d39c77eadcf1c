"""Pickles of plain data: dicts, lists, tuples, texts, numbers. Nothing in them is ever called, imported or looked up.

A pickle is a program for a small machine. This one knows the instructions that build plain data (protocols 2 to 5,
Lib/pickle.py) and refuses a file at the first other one, so that a file from elsewhere can do no harm. Steps are
bounded, and with them the memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

MAX_STEPS = 10_000_000
"""20000 entries with 25 stack frames each take half of it."""
_LONGEST_NUMBER = 8
"""Bytes of an integer; longer ones become None."""


class NotPlainError(Exception):
    """Why a pickle was refused, in one clause."""


def load(data: bytes, max_steps: int = MAX_STEPS) -> object:
    """The value that the pickle builds. It may share parts and even contain itself. Raises NotPlainError."""
    try:
        return _Machine(data).run(max_steps)
    except (IndexError, struct.error):
        raise NotPlainError("it ends early or is damaged") from None


class _Machine:
    """`stack` is what was built since the last mark, `below` the stacks under it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[object] = []
        self.below: list[list[object]] = []
        self.memo: dict[int, object] = {}

    def run(self, max_steps: int) -> object:
        for _ in range(max_steps):
            code = self.data[self.at]
            self.at += 1
            if code == _STOP:
                return self.stack.pop()
            step = _STEPS.get(code)
            if step is None:
                raise NotPlainError(f"it holds more than plain data (instruction {code:#04x} at byte {self.at - 1})")
            step(self)
        raise NotPlainError(f"it takes more than {max_steps} steps")

    def take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if len(taken) != size:
            raise NotPlainError("it ends early")
        self.at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[object]:
        made, self.stack = self.stack, self.below.pop()
        return made

    def extend(self, items: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise NotPlainError("it is damaged: an item of no list")
        target.extend(items)

    def update(self, items: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise NotPlainError("it is damaged: an item of no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | int):  # hashing a nested tuple would go as deep as it does
                raise NotPlainError("it has a key that is neither text nor number")
            target[key] = value

    def pair(self) -> list[object]:
        value = self.stack.pop()
        return [self.stack.pop(), value]

    def tuple_of(self, size: int) -> None:
        items = [self.stack.pop() for _ in range(size)]
        self.stack.append(tuple(reversed(items)))

    def remember(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def recall(self, index: int) -> None:
        if index not in self.memo:
            raise NotPlainError("it is damaged: it recalls what it never built")
        self.stack.append(self.memo[index])

    def text(self, width: int) -> None:
        self.stack.append(self.take(self.number(width)).decode("utf-8", "replace"))

    def raw(self, width: int) -> None:
        self.stack.append(self.take(self.number(width)))

    def signed(self, size: int) -> None:
        taken = self.take(size)
        self.stack.append(int.from_bytes(taken, "little", signed=True) if size <= _LONGEST_NUMBER else None)

    def real(self) -> None:
        self.stack.append(struct.unpack(">d", self.take(8))[0])


_STOP = ord(".")
_STEPS: dict[int, Callable[[_Machine], object]] = {
    0x80: lambda m: m.take(1),  # PROTO
    0x95: lambda m: m.take(8),  # FRAME: how much to read ahead
    ord("("): _Machine.mark,
    ord("0"): lambda m: m.stack.pop(),
    ord("1"): _Machine.since_mark,
    ord("N"): lambda m: m.stack.append(None),
    0x88: lambda m: m.stack.append(True),
    0x89: lambda m: m.stack.append(False),
    ord("J"): lambda m: m.signed(4),
    ord("K"): lambda m: m.stack.append(m.number(1)),
    ord("M"): lambda m: m.stack.append(m.number(2)),
    0x8A: lambda m: m.signed(m.number(1)),  # LONG1
    ord("G"): _Machine.real,
    ord("X"): lambda m: m.text(4),
    0x8C: lambda m: m.text(1),
    0x8D: lambda m: m.text(8),
    ord("T"): lambda m: m.text(4),
    ord("U"): lambda m: m.text(1),
    ord("C"): lambda m: m.raw(1),
    ord("B"): lambda m: m.raw(4),
    0x8E: lambda m: m.raw(8),
    ord("]"): lambda m: m.stack.append([]),
    ord("a"): lambda m: m.extend([m.stack.pop()]),
    ord("e"): lambda m: m.extend(m.since_mark()),
    ord(")"): lambda m: m.stack.append(()),
    ord("t"): lambda m: m.stack.append(tuple(m.since_mark())),
    0x85: lambda m: m.tuple_of(1),
    0x86: lambda m: m.tuple_of(2),
    0x87: lambda m: m.tuple_of(3),
    ord("}"): lambda m: m.stack.append({}),
    ord("s"): lambda m: m.update(m.pair()),
    ord("u"): lambda m: m.update(m.since_mark()),
    ord("q"): lambda m: m.remember(m.number(1)),
    ord("r"): lambda m: m.remember(m.number(4)),
    0x94: lambda m: m.remember(len(m.memo)),  # MEMOIZE
    ord("h"): lambda m: m.recall(m.number(1)),
    ord("j"): lambda m: m.recall(m.number(4)),
}
