"""A host whose own name leads to itself, where something did not reach it: /etc/hosts of Debian gives the host's name
the address 127.0.1.1, and a program that announces what its name resolves to calls its peers to themselves.

    user@node-a:~$ getent hosts $(hostname)
    127.0.1.1       node-a
    TimeoutError: timed out waiting for host mesh at tcp://192.0.2.10:26600

Most hosts have that line and are well: it counts only beside an attempt to meet that failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.sentences import Together

MAX_LINE = 1000
_LOOPBACK = r"127\.\d{1,3}\.\d{1,3}\.\d{1,3}"
_NAME = r"(?=[\w.-]{0,62}[A-Za-z])(?!localhost|ip6-|[\w.-]{1,62}\.localdomain)[A-Za-z0-9][\w.-]{1,62}"
_ASKS = re.compile(
    r"\$\(hostname\)|`hostname`|\bhostname -[iI]\b|\bgethostbyname\(socket\.gethostname\(\)\)"
    r"|\bgetent (?:a?hosts(?:v4)?) "
)
"""Commands that ask for the address of the host's own name."""
_ANSWER = re.compile(rf"\s{{0,8}}(?:PING {_NAME} \(|['\"(]?)({_LOOPBACK})\b")
_IN_HOSTS = re.compile(rf"\s{{0,8}}({_LOOPBACK})\s{{1,20}}(?:{_NAME}\s{{1,20}}){{0,3}}({_NAME})\s*\Z")
_PROMPT = re.compile(r"(?:\(\w{1,40}\) )?\[?[\w.-]{1,40}@([\w-]{2,62})[\w.-]{0,120}[:\s]")
_HOSTNAME = re.compile(r"[^\n$#]{0,120}[$#] ?hostname(?: -[sf])?\s*\Z")
_ALONE = re.compile(rf"({_NAME})\s*\Z")
_FAILED = re.compile(
    r"(?i:timed? ?out|\bTimeoutError\b|connection refused|no route to host|unreachable|failed to connect"
    r"|(?:could|can|did) ?n[o']t (?:connect|reach|join))"
)
_MEETING = re.compile(
    r"(?i:\b(?:tcp|grpc|gloo|ib)://|\bc10d\b|\brendezvous\b|\bTCPStore\b|\bMASTER_ADDR\b|\bmaster\b|\bscheduler\b"
    r"|\bworkers?\b|\bpeers?\b|\bjoin\b|\bconnect)"
)
_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}:\d{2,5}\b|\b[a-zA-Z][\w.-]{1,80}:\d{4,5}\b")


def own_name_apart(lines: Sequence[str]) -> Iterator[Together]:
    """Of lines numbered from 1: the one that shows the own name at loopback, where a meeting failed as well."""
    short = [line[:MAX_LINE] for line in lines]
    failed = next((line for line in short if _meets_nobody(line)), "")
    if not failed:
        return
    shown = _asked(short) or _listed(short)
    if shown is not None:
        number, address = shown
        words = f"the name of this host leads to itself ({address}), and a meeting failed: {' '.join(failed.split())}"
        yield Together("route", number, words[:300])


def _meets_nobody(line: str) -> bool:
    """Whether a line says that another host's address was not reached, or did not come."""
    return all(pattern.search(line) is not None for pattern in (_FAILED, _MEETING, _ADDRESS))


def _asked(lines: Sequence[str]) -> tuple[int, str] | None:
    """By the answer to a command that asks for the host's own name, in the next line or in the same one."""
    for number, line in enumerate(lines, 1):
        if _ASKS.search(line) is None:
            continue
        asked = _PROMPT.match(line)
        by_name = "getent" in line and "hostname" not in line
        if by_name and (asked is None or not re.search(rf"\bhosts(?:v4)? {re.escape(asked[1])}\b", line)):
            continue
        answer = _ANSWER.match(lines[number]) if number < len(lines) else None
        if answer is not None:
            return number + 1, answer[1]
    return None


def _listed(lines: Sequence[str]) -> tuple[int, str] | None:
    """By a line of /etc/hosts that holds the name which a prompt or `hostname` shows."""
    own = {found[1] for line in lines if (found := _PROMPT.match(line)) is not None}
    for number, line in enumerate(lines, 1):
        named = _ALONE.match(lines[number]) if _HOSTNAME.match(line) and number < len(lines) else None
        if named is not None:
            own.add(named[1].partition(".")[0])
    for number, line in enumerate(lines, 1):
        found = _IN_HOSTS.match(line) if "127." in line else None
        if found is not None and found[2].partition(".")[0] in own:
            return number, found[1]
    return None


__all__ = ["own_name_apart"]
