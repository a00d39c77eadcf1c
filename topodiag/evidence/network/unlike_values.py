"""Values of the network's setup that differ between hosts in one text, as a parallel shell or a person collects them.

    node02: 4: ens2f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP
    node03: 4: ens2f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP

Rows of two hosts are compared where all but the value and the interface's number is alike; `active_mtu` of
`ibv_devinfo | grep`, which names no device, with every other one. No reader of one node takes such a text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

MAX_LINE = 400
_LABELLED = re.compile(
    r"\s{0,4}(?P<host>(?=[\w./-]{0,62}[A-Za-z])[A-Za-z0-9][\w./-]{1,62})(?:: ?|(?=\s{1,20}(?:Auto|On|Off)\s))\s{0,20}"
    r"(?P<rest>\S.{4,390})$"
)
_VALUES = (
    ("mtu", re.compile(r"(?:^|[\s_])mtu[:= ]{1,3}\s{0,20}(?P<value>\d{3,5})\b", re.IGNORECASE)),
    ("lossy", re.compile(r"\b(?:Global tclass|traffic_class)[=: ]{1,3}(?P<value>\d{1,3})\b")),
    ("lossy", re.compile(r"\bPriority trust state: {0,3}(?P<value>\w{2,5})\b")),
    ("lossy", re.compile(r"^(?:Auto|On|Off)\s{1,8}(?P<value>On|Off)\b")),
    ("lossy", re.compile(r"\benabled\s{1,8}(?P<value>[01](?:\s{1,8}[01]){7})\s{0,8}$")),
)
_METRIC = re.compile(
    r"\s{0,4}(?P<name>\w{0,40}(?:pfc|lossless|ecn)\w{0,20}_(?:enabled|on|ok|active))\{(?P<labels>[^{}]{1,300})\} "
    r"(?P<value>[01])(?:\.0)?\b"
)
"""A metric that says of each host whether flow control is on, which is right for one priority and wrong for others."""
_INSTANCE = re.compile(r"\b(?:instance|node|host|hostname|Hostname|nodename)=\"([^\"]{1,120})\",?")
_ACTIVE = re.compile(r"\s{0,40}active_mtu:\s{1,30}(?P<value>\d{3,4}) \(\d\)\s{0,8}$")
_HEADS = {
    "mtu": "mtu", "active_mtu": "mtu", "path_mtu": "mtu", "tos": "lossy", "tclass": "lossy", "dscp": "lossy",
    "trust": "lossy", "pfc": "lossy", "pkey": "pkey", "gid_index": "gid",
}  # fmt: skip
_HEAD = re.compile(r"mtu|tos|tclass|dscp|trust|pfc|pkey|gid_index", re.IGNORECASE)
_NO_HEAD = re.compile(r"[\d<>=;:,.]")
_NAMED = re.compile(r"\b(mtu|active_mtu|tos|tclass|dscp|trust|pfc|pkey|gid_index)=([\w.]{1,16})", re.IGNORECASE)
_WANTED = re.compile(r"(?:expect|want|desired|should|reference)", re.IGNORECASE)
MOST_COLUMNS, MOST_ROWS, LEAST_ROWS = 12, 256, 4
_OWN_PMTU = re.compile(r"\[LOCALHOST\] {1,40}pmtu (\d{3,5})\b")
_PMTU = re.compile(r"\bResume: pmtu (\d{3,5})\b")
_INDEX = re.compile(r"^\d{1,6}: ")
_OTHER_INTERFACES = re.compile(r"\b(?:lo|docker|veth|virbr|br-|cali|cni|flannel|eno|idrac)\w{0,15}[:@ ]")


ByHost = dict[str, tuple[str, int, str]]
"""The value, the line's number and its words, by host."""


@dataclass(frozen=True, slots=True)
class Unlike:
    """A value that is not the usual one of its row: which fault, the line, and words with what most have."""

    fault: str
    number: int
    words: str


_SPEAKS = re.compile(
    r"mtu|MTU|tclass|traffic_class|trust|Trust|enabled|tos|dscp|TOS|DSCP|pfc|PFC|pkey|gid_index|O(?:n|ff) "
)


def unlike_values(lines: Sequence[str]) -> list[Unlike]:
    """Rows whose value is not that of most hosts; of two that differ, the lesser."""
    if not any(_SPEAKS.search(line) for line in lines):
        return []
    rows = _rows(lines)
    for (fault, name), pairs in _pairs(lines).items():
        odd = list(_odd(fault, pairs.values()))
        if len(pairs) >= LEAST_ROWS - 1 and len(odd) * 3 <= len(pairs):
            rows[fault, f"{name}="] = pairs
    made = [each for (fault, _), by_host in rows.items() for each in _odd(fault, by_host.values())]
    return made or [*_columns(lines), *_path(lines)] or list(_active(lines))


def _rows(lines: Sequence[str]) -> dict[tuple[str, str], ByHost]:
    """Values by fault and by all that a row says but for its host and the value."""
    rows: dict[tuple[str, str], ByHost] = defaultdict(dict)
    for number, line in enumerate(lines, 1):
        said = _row_of(line) if len(line) <= MAX_LINE and _SPEAKS.search(line) else None
        if said is not None:
            fault, host, shape, value = said
            rows[fault, shape].setdefault(host, (value, number, line.strip()))
    return rows


def _row_of(line: str) -> tuple[str, str, str, str] | None:
    """Fault, host, shape and value of a row of one host."""
    metric = _METRIC.match(line)
    if metric is not None and (host := _INSTANCE.search(metric["labels"])) is not None:
        return "lossy", host[1], f"{metric['name']} {_INSTANCE.sub('', metric['labels'])}", metric["value"]
    found = _LABELLED.match(line)
    if found is None or _OTHER_INTERFACES.search(found["rest"]):
        return None
    rest = _INDEX.sub("", found["rest"])
    for fault, pattern in _VALUES:
        said = pattern.search(rest)
        if said is not None:
            return fault, found["host"], f"{rest[: said.start('value')]}#", " ".join(said["value"].split())
    return None


def _pairs(lines: Sequence[str]) -> dict[tuple[str, str], ByHost]:
    """Values that rows of hosts write behind their names: `h03: trust=pcp pfc=none`."""
    made: dict[tuple[str, str], ByHost] = defaultdict(dict)
    for number, line in enumerate(lines, 1):
        found = _LABELLED.match(line) if "=" in line and len(line) <= MAX_LINE else None
        for said in _NAMED.finditer(found["rest"]) if found is not None else ():
            row = made[_HEADS[said[1].lower()], said[1].lower()]
            if found is not None:
                row.setdefault(found["host"], (said[2].lower(), number, line.strip()))
    return made


def _columns(lines: Sequence[str]) -> Iterator[Unlike]:
    """Rows of a table with a column for such a value: beside a column of what is expected, else unlike most rows."""
    at, heads = next(((at, heads) for at, line in enumerate(lines) if (heads := _heads(line))), (0, []))
    place = next((n for n, head in enumerate(heads) if head.lower() in _HEADS), -1)
    if place < 0:
        return
    want = next((n for n, head in enumerate(heads) if _WANTED.match(head)), -1)
    below = enumerate(lines[at + 1 : at + 1 + MOST_ROWS], at + 2)
    rows = [(cells, number, line.strip()) for number, line in below if len(cells := _cells(line)) >= len(heads)]
    fault = _HEADS[heads[place].lower()]
    if want >= 0:
        for cells, number, said in rows:
            if cells[want].isalnum() and cells[place].lower() != cells[want].lower():
                yield Unlike(fault, number, f"{' '.join(said.split())[:200]}: {cells[want]} is expected")
        return
    plain = [(cells[place], number, said) for cells, number, said in rows if cells[place].isalnum()]
    odd = list(_odd(fault, plain))
    if len(plain) >= LEAST_ROWS and len(odd) * 3 <= len(plain):
        yield from odd


def _heads(line: str) -> list[str]:
    """The heads of a table with a column for a value of the setup; nothing for any other line."""
    if len(line) > MAX_LINE or _HEAD.search(line) is None or _NO_HEAD.search(line):
        return []
    heads = _cells(line)
    named = any(head.lower() in _HEADS for head in heads)
    return heads if named and 2 <= len(heads) <= MOST_COLUMNS else []


def _cells(line: str) -> list[str]:
    return line[:MAX_LINE].replace("|", " ").split()


def _path(lines: Sequence[str]) -> Iterator[Unlike]:
    """tracepath, which begins with the MTU of its own interface and ends with that of the path."""
    own = next((found[1] for line in lines if (found := _OWN_PMTU.search(line[:MAX_LINE])) is not None), "")
    for number, line in enumerate(lines, 1):
        found = _PMTU.search(line[:MAX_LINE]) if own else None
        if found is not None and int(found[1]) < int(own):
            yield Unlike("mtu", number, f"{' '.join(line.split())[:200]}: the own interface has {own}")


def _active(lines: Sequence[str]) -> Iterator[Unlike]:
    """`active_mtu` rows that a `grep` left without the device that they are of."""
    if any("hca_id:" in line for line in lines):
        return iter(())
    found = [(said["value"], number, line.strip()) for number, line in enumerate(lines, 1)
             if (said := _ACTIVE.match(line[:MAX_LINE])) is not None]  # fmt: skip
    return _odd("mtu", found)


def _odd(fault: str, rows: Iterable[tuple[str, int, str]]) -> Iterator[Unlike]:
    """The rows with another value than most."""
    rows = list(rows)
    count = Counter(value for value, _, _ in rows)
    if len(count) < 2:
        return
    usual = max(count, key=lambda value: (count[value], len(value), value))
    for value, number, line in rows:
        if value != usual:
            words = " ".join(line.split())[:200]
            yield Unlike(fault, number, f"{words}: {count[usual]} of {len(rows)} have {usual}")


__all__ = ["Unlike", "unlike_values"]
