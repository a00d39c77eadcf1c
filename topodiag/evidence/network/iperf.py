"""`iperf3` (and iperf 2) between two hosts: packets that TCP sent again, and a rate far below that of the interface.

    [ ID] Interval           Transfer     Bitrate         Retr
    [  5]   0.00-10.00  sec   240 MBytes  201 Mbits/sec  8113             sender
    [SUM]   0.00-10.00  sec   115 GBytes  98.9 Gbits/sec    0             sender

The rate of one TCP stream depends on the host, so that it counts only where it is a tenth of the interface's, whose
speed stands in the same text (`ethtool IF`). Format: iperf 3.1 to 3.17, src/iperf_locale.c; `MBytes` are 2^20 bytes.
"""

from __future__ import annotations

import re

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import MAX_LINE, Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import Event, Trust
from topodiag.model.topics import Topic
from topodiag.words.units import in_gbps

_HEAD = regex(r"^[ \t>|]{0,20}\[ ?ID\] Interval {1,20}Transfer {1,20}(?:Bitrate|Bandwidth)\b", re.M)
_TOTAL = regex(
    r"\[(?P<stream>SUM| {0,3}\d{1,4})\] {1,6}[\d.]{1,10}-[\d.]{1,10} {1,4}sec {1,6}(?P<moved>\d{1,9}(?:\.\d{1,4})?)"
    r" (?P<of>[KMGT]?)Bytes {1,6}(?P<rate>\d{1,9}(?:\.\d{1,4})?) (?P<unit>[KMGT]?)bits/sec"
    r"(?: {1,20}(?P<again>\d{1,12}))?"
    r" {1,30}(?:sender|receiver)"
)
_INTERVAL = regex(
    r"\[ {0,3}(?P<stream>\d{1,4})\] {1,6}[\d.]{1,10}-[\d.]{1,10} {1,4}sec {1,6}(?P<moved>[\d.]{1,10}) [KMGT]?Bytes"
    r" {1,6}[\d.]{1,10} [KMGT]?bits/sec {1,20}\d{1,12} {1,12}(?P<window>[\d.]{1,6}) KBytes\s*$"
)
ONE_JUMBO_KB = (7.5, 9.3)
"""A window of one segment in frames of 8000 to 9216 bytes: TCP has lost all before it, and tries with one again."""
STILL = 2
"""Seconds without a byte, on a connection that stands, from which on it is called stuck."""
_SPEED = regex(r"\bSpeed: {0,4}(\d{3,7})Mb/s")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
SEGMENT = 1448
"""Bytes of data in a segment of TCP on Ethernet: in larger frames there are fewer, and the share that is lost grows."""
MANY_SHARE = 0.005
MANY = 1000
"""Segments sent again from which on a path is called lossy: congestion control on a shared path loses one in ten
thousand."""
SLOW_SHARE = 0.1


class Iperf(Reporting):
    """Losses and rates that iperf3 measured."""

    kind = "iperf"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 50
    a_piece = "a test between two hosts"

    def recognises(self, head: str) -> bool:
        return _HEAD.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        speeds = [int(found[1]) / 1000 for found in _SPEED.finditer(blob.text)]
        best: tuple[float, int, str] | None = None
        summed = "[SUM]" in blob.text
        for number, line in blob.lines():
            parsed.lines = number
            found = _TOTAL.search(line[:MAX_LINE])
            if found is None or (summed and found["stream"] != "SUM"):
                continue
            said = " ".join(line.split())[:200]
            segments = float(found["moved"]) * 1024 ** _POWERS[found["of"]] / SEGMENT
            again = int(found["again"] or 0)
            if again >= MANY and again > MANY_SHARE * segments:
                parsed.records.append(
                    report("network.tcp_loss", f"iperf: {said}", blob, number, line, trust=Trust.PERSON)
                )
            rate = float(found["rate"]) * 1000 ** _POWERS[found["unit"]] / 1e9
            best = max(best or (rate, number, said), (rate, number, said))
        parsed.records += _stuck(blob)
        if best is not None and speeds and 0 < best[0] < SLOW_SHARE * min(speeds):
            words = f"iperf: {in_gbps(best[0])} over an interface of {in_gbps(min(speeds))}: {best[2]}"
            parsed.records.append(report("network.tcp_slow", words, blob, best[1], best[2], trust=Trust.PERSON))
        return parsed


def _stuck(blob: Blob) -> list[Event]:
    """A connection that stands, since small packets pass, and that carries nothing in large frames: somewhere between
    its ends frames of that size are dropped."""
    still: dict[str, int] = {}
    for number, line in blob.lines():
        found = _INTERVAL.search(line[:MAX_LINE])
        if found is None:
            continue
        one = ONE_JUMBO_KB[0] <= float(found["window"]) <= ONE_JUMBO_KB[1]
        still[found["stream"]] = still.get(found["stream"], 0) + 1 if one and float(found["moved"]) == 0 else 0
        if still[found["stream"]] >= STILL:
            said = f"iperf: a connection stands, and in large frames no byte comes through: {' '.join(line.split())}"
            return [report("network.mtu", said[:300], blob, number, line, trust=Trust.PERSON)]
    return []
