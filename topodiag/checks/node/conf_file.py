"""Lines of nccl.conf that NCCL does not read as meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Never

from topodiag.checks.interface import NodeCheck, OneStep
from topodiag.model.finding import Cost, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.system import ConfLine
from topodiag.model.topics import Topic

MAX_VALUE_BYTES = 1023
"""NCCL copies at most this much of a value (setEnvFile, src/misc/param.cc, v2.30)."""

_COMMENTED = re.compile(r"\s#")
_LISTS = frozenset({"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_ALGO", "NCCL_PROTO"})
"""Lists that NCCL splits at commas without trimming (parseStringList, src/misc/utils.cc)."""

_PATH_NAMES = frozenset(
    {"NCCL_DEBUG_FILE", "NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_FILE", "NCCL_CONF_FILE"}
)


class ConfLineNotRead(OneStep[Node], NodeCheck[Never]):
    """ENV002: an nccl.conf line that NCCL does not read as meant

    What it finds
        Blanks round `=` and in lists, quotes, `export`, comments behind a value, indented lines, lines without `=`,
        values that are too long, `~` in paths: each is taken literally by NCCL, without a warning. A second line for
        a name that the same file has set already: the first one counts.

    Why it matters
        The setting that was meant is not in force, and nothing says so: `NCCL_IB_HCA = mlx5` sets a variable called
        `NCCL_IB_HCA ` that nobody reads, and the job picks its NICs as if the line were not there.

    Evidence it reads
        /etc/nccl.conf, ~/.nccl.conf and the file that NCCL_CONF_FILE names, line by line. In a job's log: values
        that NCCL prints with a blank or a quote in them, and those that it refuses (`Invalid value`).

    When it stays silent
        Comments (`#` as the very first character) and empty lines. There is no such file: not applicable. The files
        could not be looked at: unknown.

    How to confirm
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV      then run: NCCL prints each variable in force
        The variable of this line is missing there, or has an odd value.

    How to fix
        Write `NAME=value`: no blanks, no quotes, no `export`, comments on lines of their own that begin with `#`.

    References
        NCCL src/misc/param.cc (setEnvFile).
    """

    id = "ENV002"
    title = "an nccl.conf line that NCCL does not read as meant"

    def judge(self, node: Node, peers: Sequence[Node] = ()) -> Outcome:
        if not node.conf_lines:
            if Topic.SETTINGS in node.told:
                return self.not_applicable(node, "no nccl.conf on this node")
            return self.unknown(node, "nccl.conf files are not in the evidence")
        found = []
        first: dict[tuple[str, str], str] = {}
        for line in node.conf_lines:
            wrong = misread(line.text) or _repeated(line, first)
            if wrong is not None:
                found.append(self._report(node, line, *wrong))
        return self.found(node, found) if found else self.clean(node)

    def _report(self, node: Node, line: ConfLine, what: str, meant: str) -> Finding:
        return self.finding(
            node,
            Severity.WARNING,
            f"{line.path} line {line.number}: {what}",
            observed=line.text.strip()[:120] or "(blanks)",
            expected=meant or "NAME=value",
            fix=(f"Write it as: {meant}" if meant else "Remove the line, or write it as NAME=value",),
            cost=Cost(text="the setting that was meant is not in force, and NCCL does not say so"),
            evidence=[line.origin],
        )


def misread(text: str) -> tuple[str, str] | None:
    """What NCCL gets wrong about a line and how to write it, or None when it reads it as meant."""
    if not text.strip() or text.startswith("#"):
        return None
    bare = text.strip()
    if bare.startswith("#"):
        return "an indented comment is read as a setting", "" if "=" not in bare else bare
    if "=" not in text:
        return "no = in it, so NCCL skips the line", ""
    words = bare.removeprefix("export ").strip()
    name, _, value = words.partition("=")
    clean = _clean(name, value)
    if bare.startswith("export "):
        return "`export` becomes part of the name", clean
    if name != name.rstrip() or text[0].isspace():
        return "a blank becomes part of the name", clean
    if len(name.split()) > 1:
        return "the words before the name become part of it", clean
    if value != value.lstrip():
        return "a blank becomes part of the value", clean
    if _COMMENTED.search(value):
        return "a comment behind the value becomes part of it", clean
    if value[:1] in ("'", '"') or value[-1:] in ("'", '"'):
        return "quotes become part of the value", clean
    if text != text.rstrip():
        return "a blank at the end becomes part of the value", clean
    if name in _LISTS and any(char.isspace() for char in value):
        return "a blank in the list becomes part of a name in it", clean
    if len(value.encode("utf-8", errors="replace")) > MAX_VALUE_BYTES:
        return f"the value is longer than {MAX_VALUE_BYTES} bytes and is cut", ""
    if value.startswith("~") and name in _PATH_NAMES:
        return "`~` is not expanded", clean
    return None


def _repeated(line: ConfLine, first: dict[tuple[str, str], str]) -> tuple[str, str] | None:
    """A line for a name that has another value already: setenv does not overwrite."""
    name, equals, value = line.text.partition("=")
    if not equals or line.text.startswith("#"):
        return None
    kept = first.setdefault((line.path, name), value)
    return None if kept == value else (f"{name[:60]} is set further up already, and the first line counts", "")


def _clean(name: str, value: str) -> str:
    """The line as it was meant: no blanks, quotes or comments round the value, no words before the name."""
    name = name.rsplit(maxsplit=1)[-1] if name.split() else ""
    value = value[:MAX_VALUE_BYTES]
    while (bare := _bare(name, value)) != value:
        value = bare
    home = value.startswith("~") and name in _PATH_NAMES
    return f"{name}=/home/USER{value[1:]}" if home else f"{name}={value}"


def _bare(name: str, value: str) -> str:
    value = _COMMENTED.split(f" {value}" if value.startswith("#") else value, maxsplit=1)[0].strip().strip("'\"")
    return "".join(value.split()) if name in _LISTS else value
