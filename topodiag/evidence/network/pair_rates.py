"""A list of pairs of hosts with the bandwidth between them, as people and scripts print it: which pairs fall short.

    g01-g09       391.8          g01 -> g09: 391.8 Gb/s          g01,g09,391.8
    g02-g10       196.1

Tests of perftest, each below a line that names its pair (`### g01 -> g09: ib_write_bw`), are such a list, too.

Two thirds of the pairs must agree within a tenth, and say what the path can do; a pair counts that stays below three
quarters of it. Of tests of perftest two are enough: what the faster one carried the same port can do.

Format: nobody's; a unit stands behind the number, or in a line above.
"""

from __future__ import annotations

import re
from statistics import median

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.network import perftest
from topodiag.evidence.sentences import MAX_LINE, Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import Event, Trust
from topodiag.model.topics import Topic
from topodiag.words.fold import few, plural

_HOST = r"(?=[A-Za-z0-9._]{0,40}[A-Za-z])(?=[A-Za-z._]{0,40}\d)[A-Za-z0-9][A-Za-z0-9._]{1,62}"
_NAME = r"(?=[A-Za-z0-9._-]{0,40}\d)[A-Za-z](?:[A-Za-z0-9._]|-(?!-|>)){1,62}"
_PAIR = regex(
    rf"[\s|>*]{{0,8}}(?P<a>{_HOST})(?:\s{{0,3}}(?:<-{{1,2}}>|-{{1,2}}>|<=>|=>|-|–|→|↔|,|\||\bto\b|\bvs\b)\s{{0,3}}|\s{{1,20}})"
    rf"(?P<b>{_HOST})\s{{0,3}}[:,=|]?\s{{0,20}}(?:(?:bw|busbw|bandwidth|avg|BW|rate)\s{{0,3}}[:=]?\s{{0,3}})?"
    r"(?P<rate>\d{1,4}\.\d{1,4}|\d{2,4})\s{0,3}(?P<unit>G(?:i?B|b)(?:it)?(?:ps|/s(?:ec)?))?\s{0,3}(?:[|,#(].{0,80}|\b(?:ok|OK|low|LOW|slow|SLOW|FAIL|PASS)\b.{0,20})?$"
)
_UNIT = regex(r"(?<![A-Za-z])G(?:i?B|b)(?:it)?(?:ps|/s)|(?:bus|alg)bw|\bbandwidth\b", re.IGNORECASE)
LEAST = 5
AGREE = 0.1
LOW = 0.75
MOST_LOW, MOST_OF_FEW = 0.45, 0.5
"""Pairs that fall short: more of them, and nobody knows what the path can do."""
_TITLE = regex(
    rf"[\s#=*$>|-]{{0,12}}(?P<a>{_NAME})\s{{0,3}}(?:<-{{1,2}}>|-{{1,2}}>|<=>|=>|→|↔|\bto\b|\bvs\b)\s{{0,3}}(?P<b>{_NAME})\b"
)
TITLE_ABOVE = 8
"""Lines between the title of a test and its own head."""


class PairRates(Reporting):
    """Pairs of hosts that carry far less than the others of a list."""

    kind = "pair-rates"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 30
    a_piece = "a list of pairs"

    def recognises(self, head: str) -> bool:
        if perftest.shows_bandwidth(head):
            return bool(_tested(head.split("\n")))
        return _UNIT.search(head) is not None and len(_rows(head.split("\n"))) >= LEAST

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        lines = [line for _, line in blob.lines()]
        parsed.lines = len(lines)
        tested = _tested(lines) if perftest.shows_bandwidth(blob.text) else []
        rows = tested or _rows(lines)
        usual = _usual([rate for _, _, rate in rows], few=bool(tested)) if rows else 0.0
        low = [(number, pair, rate) for number, pair, rate in rows if rate < LOW * usual]
        fair = [rate for _, _, rate in rows if rate >= (1 - AGREE) * usual]
        most = MOST_LOW if not tested or len(rows) >= LEAST else MOST_OF_FEW
        if low and len(low) <= most * len(rows) and len(low) + len(fair) == len(rows):
            shown = few([f"{a}-{b} {rate:g}" for _, (a, b), rate in low])
            others = plural(len(fair), "other pair carries", "other pairs carry")
            words = f"{shown}, while {others} about {usual:g}{_ends(low, rows)}"
            number = low[0][0]
            parsed.records.append(report("network.pairs", words, blob, number, lines[number - 1], trust=Trust.PERSON))
        return parsed


def _usual(rates: list[float], *, few: bool) -> float:
    """What the path can do: the middle of many, the best of a few that one tool measured."""
    return max(rates) if few and len(rates) < LEAST else median(rates)


def _tested(lines: list[str]) -> list[tuple[int, tuple[str, str], float]]:
    """The same of tests of perftest below titles that name their pairs: the best average of each."""
    made: dict[tuple[str, str], tuple[int, float]] = {}
    titled, pair = -TITLE_ABOVE, None
    for number, line in enumerate(lines, 1):
        title = _TITLE.match(line) if len(line) < MAX_LINE else None
        if title is not None and title["a"] != title["b"]:
            titled, pair = number, (title["a"], title["b"])
        elif perftest.begins(line) and number - titled > TITLE_ABOVE:
            pair = None
        elif pair is not None and (rate := perftest.average_gbps(line)) > made.get(pair, (0, 0.0))[1]:
            made[pair] = number, rate
    return [(number, pair, rate) for pair, (number, rate) in made.items()] if len(made) > 1 else []


def _rows(lines: list[str]) -> list[tuple[int, tuple[str, str], float]]:
    """Line number, the two hosts, what was measured between them."""
    made = []
    for number, line in enumerate(lines, 1):
        found = _PAIR.match(line) if len(line) < min(MAX_LINE, 300) else None
        if found is not None and found["a"] != found["b"]:
            made.append((number, (found["a"], found["b"]), float(found["rate"])))
    return made


def _ends(low: list[tuple[int, tuple[str, str], float]], rows: list[tuple[int, tuple[str, str], float]]) -> str:
    """Whether one host is an end of all pairs that fall short, and of no other one."""
    ends = set(low[0][1]).intersection(*(pair for _, pair, _ in low)) if len(low) > 1 else set()
    places = {number for number, _, _ in low}
    own = [host for host in sorted(ends) if not any(host in pair for number, pair, _ in rows if number not in places)]
    return f": {own[0]} is an end of each of them, and of no other pair" if len(own) == 1 else ""
