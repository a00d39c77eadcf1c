"""Settings as given: the environment, and every nccl.conf as NCCL reads it (to the letter, without mercy).

Judges nothing: a line that NCCL will not take as it was meant is kept as it stands, for the checks.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.tree import TreeFile, read_tree
from topodiag.lazy import dataclass, regex
from topodiag.model.system import ConfLine, Setting
from topodiag.model.topics import Topic
from topodiag.words.own_data import own_data

ENVIRONMENT = "environment"
NOT_KEPT = "the collector did not keep the value: it is not of the form that the variable takes"
MAX_VALUE = 1023
"""Bytes of a name or a value that NCCL keeps (setEnvFile in src/misc/param.cc at v2.30)."""

_TREE = regex(r"^[=!d] /?(?:environ|(?:\S{1,200}/)?\.?nccl\.conf)(?:\t|$)", re.MULTILINE)
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
_SECRET = regex(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
_NAMES = "evidence/host/names"
_NAMESPACE = "serviceaccount/namespace"
"""The file in a pod that names its namespace (Kubernetes, "Accessing the Kubernetes API from a Pod")."""
REPLACED = regex(r"<replaced: [^<>\n]{1,80}>|<hidden>")
"""What the collector writes for a value that is not of the form that its variable takes: the value is not known."""
_CONF_NAME = regex(r"\.?nccl\.conf", re.IGNORECASE)
_ASSIGNMENT = regex(r"\s{0,40}(?:export\s{1,8})?[A-Za-z_][A-Za-z0-9_]{0,200}\s{0,8}=")
_NCCL_ASSIGNMENT = regex(r"\s{0,40}(?:export\s{1,8})?NCCL_[A-Z0-9_]{1,100}\s{0,8}=")
_SPACED = regex(r"\s{0,40}NCCL_[A-Z0-9_]{1,100}\s{1,8}=")
_SHELL = regex(r"^#!|^[ \t]{0,40}(?:export|setenv)[ \t]|^#SBATCH", re.MULTILINE)
_LOGIN = regex(r"^(?:PATH|HOME|PWD|SHLVL|SHELL|USER|SLURM_\w{1,80}|KUBERNETES_\w{1,80})=", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EnvLine:
    """One variable of an environment; an empty name says that the environment was looked at."""

    name: str
    value: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ConfText:
    """One line of a conf file: `number` counts in that file and `raw` is its text; `line` and `text` in the evidence.

    `name` and `value` are what NCCL sets; `name` is empty for a line that sets nothing or no usable name.
    """

    path: str
    number: int
    line: int
    raw: str
    text: str
    name: str = ""
    value: str = ""


class Settings(Source[EnvLine | ConfText]):
    """Reads the collector's settings tree, a bare nccl.conf, and bare output of `env`."""

    kind = "settings"
    speaks_of = frozenset({Topic.SETTINGS})
    trust = 60

    def recognises(self, head: str) -> bool:
        if _TREE.search(head) is not None:
            return True
        lines = [line for line in head.split("\n") if line.strip() and not line.startswith("#")][:2000]
        if not lines:
            return False
        if head.startswith("#!") or "#SBATCH" in head:
            return False
        nccl = sum(_NCCL_ASSIGNMENT.match(line) is not None for line in lines)
        if nccl * 10 >= len(lines) * 6:
            return True
        assigned = sum(_ASSIGNMENT.match(line) is not None for line in lines)
        return len(lines) >= 3 and assigned * 10 >= len(lines) * 8 and _LOGIN.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[EnvLine | ConfText]:
        head = blob.text[:65536]
        if blob.item is not None or _TREE.search(head):
            return _parse_tree(blob)
        return _parse_bare(blob, _is_conf(blob.name, head))

    def fill(self, blob: Blob, parsed: Parsed[EnvLine | ConfText], draft: NodeDraft) -> None:
        scheduler = draft.single("scheduler")
        effective: set[tuple[str, str]] = set()
        for record in parsed.records:
            origin = blob.origin(record.line, record.text)
            if isinstance(record, EnvLine):
                if not record.name:
                    continue
                if record.name.startswith(tuple(own_data(_NAMES)["schedulers"])):
                    scheduler.offer(record.name, record.value, origin)
                else:
                    draft.settings.append(Setting(record.name, record.value, ENVIRONMENT, origin))
                continue
            draft.conf_lines.append(ConfLine(record.path, record.number, record.raw, origin))
            # setenv without overwriting: of two lines of one file the first counts.
            if record.name and (record.path, record.name) not in effective:
                effective.add((record.path, record.name))
                draft.settings.append(Setting(record.name, record.value, record.path, origin))


def as_nccl_reads(line: str) -> tuple[str, str] | None:
    """Name and value that NCCL takes from a line of nccl.conf, or None when it takes nothing.

    A `#` makes a comment only as the first byte; the first `=` splits; nothing is trimmed and no quote is removed
    (setEnvFile in src/misc/param.cc at v2.30).
    """
    if line.startswith("#") or "=" not in line:
        return None
    name, _, value = line.partition("=")
    return _cut(name), _cut(value)


def _cut(text: str) -> str:
    raw = text.encode("utf-8", errors="replace")
    return text if len(raw) <= MAX_VALUE else raw[:MAX_VALUE].decode("utf-8", errors="ignore")


def _parse_tree(blob: Blob) -> Parsed[EnvLine | ConfText]:
    files: Parsed[TreeFile] = Parsed()
    tree = read_tree(blob, files)
    parsed: Parsed[EnvLine | ConfText] = Parsed([], files.unread, files.unread_count)
    environ = tree.files.get("environ")
    named = ""
    if environ is not None and environ.is_dir:
        parsed.records.append(EnvLine("", "", environ.at, "d environ"))
    for number, text in environ.lines if environ is not None else ():
        if REPLACED.search(text):
            parsed.leave(blob, number, text, NOT_KEPT)
            continue
        record = _env_line(number, text, f"= environ\t{text}")
        if record is not None:
            parsed.records.append(record)
            named = record.value if record.name == "NCCL_CONF_FILE" else named
        elif "=" not in text and text.strip():
            parsed.leave(blob, number, text, "not a variable")
    for path, file in tree.files.items():
        if path.endswith(_NAMESPACE) and file.text:
            parsed.records.append(EnvLine("POD_NAMESPACE", file.text[:253], file.at, f"= {path}\t{file.text}"))
        if path != "environ" and (_CONF_NAME.fullmatch(path.rpartition("/")[2]) or _same_file(path, named)):
            shown = _conf_path(path)
            for count, (number, text) in enumerate(file.lines, start=1):
                if REPLACED.search(text):
                    parsed.leave(blob, number, text, NOT_KEPT)
                    continue
                parsed.records.append(_conf_line(shown, count, number, text, f"= {path}\t{text}"))
    return parsed


def _same_file(path: str, named: str) -> bool:
    return bool(named) and path.strip("/") == named.strip().removeprefix("./").strip("/")


def _conf_path(path: str) -> str:
    """The path as users write it; the collector writes the user's home as HOME."""
    return "~/" + path[5:] if path.startswith("HOME/") else "/" + path


def _env_line(number: int, text: str, quote: str) -> EnvLine | None:
    """A variable of the environment that says something of communication or of the scheduler, never a secret."""
    name, equals, value = text.partition("=")
    kept = (*own_data(_NAMES)["ours"], *own_data(_NAMES)["schedulers"])
    if not equals or not _NAME.fullmatch(name) or not name.startswith(kept):
        return None
    if _SECRET.search(name) and not name.startswith("NCCL_"):  # NCCL_IB_PKEY is a partition, no secret
        return None
    return EnvLine(name, value[:4096], number, quote)


def _conf_line(path: str, number: int, line: int, text: str, quote: str) -> ConfText:
    read = as_nccl_reads(text)
    if read is None or not _NAME.fullmatch(read[0]):
        return ConfText(path, number, line, text, quote)
    return ConfText(path, number, line, text, quote, *read)


def _is_conf(name: str, head: str) -> bool:
    """Whether bare assignments are an nccl.conf rather than an environment.

    In doubt they are an environment, where an odd line is no fault: only a name that says conf, or blanks round the
    equals sign that no shell would take, make a file of it.
    """
    base = name.rpartition("/")[2].lower()
    if "conf" in base:
        return True
    return "env" not in base and not _SHELL.search(head) and any(map(_SPACED.match, head.split("\n")))


def _parse_bare(blob: Blob, conf: bool) -> Parsed[EnvLine | ConfText]:
    parsed: Parsed[EnvLine | ConfText] = Parsed()
    lines = list(blob.lines())
    if lines and not lines[-1][1]:
        lines.pop()  # the end of the last line begins none
    for number, text in lines:
        if conf:
            parsed.records.append(_conf_line(blob.name, number, number, text, text))
            continue
        assigned = text.strip()
        if assigned.startswith("export "):
            assigned = _unquoted(assigned[len("export ") :].lstrip())
        record = _env_line(number, assigned, text)
        if record is not None:
            parsed.records.append(record)
        elif assigned and not assigned.startswith("#") and not _ASSIGNMENT.match(assigned):
            parsed.leave(blob, number, text, "not a variable")
    return parsed


def _unquoted(assignment: str) -> str:
    """A shell's assignment with one pair of quotes round its value removed."""
    name, equals, value = assignment.partition("=")
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return name + equals + value
