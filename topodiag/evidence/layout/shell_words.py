"""The options of the command lines in a launch script: `--name value`, `--name=value`, `a.b=c`, and flags.

Nothing runs. A variable stands for its value where the script sets it once to a plain word; any other is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from topodiag.lazy import regex

_COMMENT = regex(r"(?:^|(?<=\s))#[^\n]*")
_SET = regex(
    r"^[ \t]*(?:export |local |readonly )?[ \t]*([A-Za-z_]\w{0,60})="
    r"(?:\"([^\"\n]{0,400})\"|'([^'\n]{0,400})'|([^\s\"';()]{0,200}))[ \t]*;?[ \t]*$",
    re.MULTILINE,
)
_OPTION = regex(
    r"(?<![\w./-])(?:--?([A-Za-z][\w.-]{0,80})(?:=|[ \t\v]+|(?=[\s)\"']|$))"
    r"|[\"']?([a-z][a-z0-9]*[_.][\w.]{1,80})[\"']?(?:=|: ?))"
    r"(?:[\"']?((?!-[A-Za-z-])[^\s\"'(),;]{1,80})[\"']?)?"
)
_VARIABLE = regex(r"\$(?:([A-Za-z_]\w{0,60})|\{([A-Za-z_]\w{0,60})(?::?-([^{}$]{0,80}))?\})")
_DEEP = 5
"""Variables of variables."""
_FLAGS = frozenset({
    "bf16", "fp16", "swiglu", "sequence-parallel", "use-distributed-optimizer", "overlap-grad-reduce",
    "use-tp-pp-dp-mapping", "group-query-attention", "untie-embeddings-and-output-weights", "enable-expert-parallel",
    "recompute-activations",
})  # fmt: skip
"""Options without a value: the word behind one is something else."""


class Said(NamedTuple):
    """A setting by the names on the way to it, its value, and its line (from 1)."""

    path: tuple[str, ...]
    value: Any
    line: int | None


def command_words(text: str) -> Iterator[Said]:
    """Every option of a script with its value, `True` for a flag."""
    text = _COMMENT.sub("", text).replace("\\\r\n", "\v").replace("\\\n", "\v")
    variables = _variables(text)
    line, at = 1, 0
    for match in _OPTION.finditer(text):
        line += sum(text.count(sign, at, match.start()) for sign in "\n\v")
        at = match.start()
        name = match[1] or match[2]
        flag = name.replace("_", "-") in _FLAGS and match[2] is None
        bare = match[3] if match[3] is None or "{" in match[3] else match[3].rstrip("}]")
        value = "True" if flag or not bare else _filled(bare, variables)
        yield Said(tuple(name.split(".")), value, line)


def _variables(text: str) -> dict[str, str]:
    """The plain variables that the script sets; one that is set to two values is none."""
    made: dict[str, str] = {}
    for match in _SET.finditer(text):
        name, value = match[1], next((part for part in match.groups()[1:] if part is not None), "")
        made[name] = value if made.get(name, value) == value else f"${name}"
    return made


def _filled(value: str, variables: dict[str, str]) -> str:
    for _ in range(_DEEP):
        if "$" not in value or len(value) > 400:
            break
        value = _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], match[3] or match[0]), value)
    return value
