"""Lines of nccl.conf that NCCL does not read as meant."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import NodeCheck
from topodiag.lazy import regex
from topodiag.model.finding import Finding, Outcome
from topodiag.model.node import ConfLine, Node
from topodiag.model.provenance import Topic

MAX_VALUE_BYTES = 1023
"""NCCL copies at most this much of a value (setEnvFile, src/misc/param.cc, v2.30)."""

TOO_LONG = f"the value is longer than {MAX_VALUE_BYTES} bytes and is cut"

_COMMENTED = regex(r"\s#")
_LISTS = frozenset({"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_ALGO", "NCCL_PROTO"})
"""Lists that NCCL splits at commas without trimming (parseStringList, src/misc/utils.cc)."""

_PATH_NAMES = frozenset(
    {"NCCL_DEBUG_FILE", "NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_FILE", "NCCL_CONF_FILE"}
)


class ConfLineNotRead(NodeCheck, id="ENV002"):
    """ENV002: an nccl.conf line that NCCL does not read as meant

    What it finds
        Blanks round `=` and in lists, quotes, `export`, comments behind a value, indented lines, lines without `=`,
        values that are too long, `~` in paths: each is taken literally by NCCL, without a warning. A second line for
        a name that the same file has set already: the first one counts.

    Why it matters
        The intended setting is not in force, and NCCL prints nothing: `NCCL_IB_HCA = mlx5` sets a variable named
        `NCCL_IB_HCA `, which NCCL does not read. The job chooses its NICs as if the line were missing.

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

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        if not judged.conf_lines:
            if Topic.SETTINGS in judged.topics:
                return self.not_applicable(judged, "no nccl.conf on this node")
            return self.unknown(judged, "nccl.conf files are not in the evidence")
        first: dict[tuple[str, str], str] = {}
        wrong = [(line, misread(line.text) or _repeated(line, first)) for line in judged.conf_lines]
        return self.any_of(judged, (self._report(judged, line, *pair) for line, pair in wrong if pair is not None))

    def _report(self, node: Node, line: ConfLine, what: str, meant: str) -> Finding:
        """What NCCL gets wrong about a line, and how to write it ("" where it is to go)."""
        return self.finding(
            self.where(node),
            "misread line",
            f"{line.path} line {line.number}: {what}",
            observed=line.text.strip()[:120] or "(blanks)",
            expected=meant or "NAME=value",
            fix=(f"Write it as: {meant}" if meant else "Remove the line, or write it as NAME=value",),
            evidence=[line],
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
    name, _, value = bare.removeprefix("export ").strip().partition("=")
    wrong = _misread_name(text, name) or _misread_value(text, name, value)
    if wrong is None:
        return None
    return wrong, "" if wrong == TOO_LONG else _clean(name, value)


def _misread_name(text: str, name: str) -> str | None:
    if text.strip().startswith("export "):
        return "`export` becomes part of the name"
    if name != name.rstrip() or text[0].isspace():
        return "a blank becomes part of the name"
    if len(name.split()) > 1:
        return "the words before the name become part of it"
    return None


def _misread_value(text: str, name: str, value: str) -> str | None:
    quotes = ("'", '"')
    rules = (
        (value != value.lstrip(), "a blank becomes part of the value"),
        (_COMMENTED.search(value) is not None, "a comment behind the value becomes part of it"),
        (value[:1] in quotes or value[-1:] in quotes, "quotes become part of the value"),
        (text != text.rstrip(), "a blank at the end becomes part of the value"),
        (name in _LISTS and any(map(str.isspace, value)), "a blank in the list becomes part of a name in it"),
        (len(value.encode("utf-8", errors="replace")) > MAX_VALUE_BYTES, TOO_LONG),
        (value.startswith("~") and name in _PATH_NAMES, "`~` is not expanded"),
    )
    return next((what for holds, what in rules if holds), None)


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
