"""What must not change a verdict: the order of the evidence, names of hosts, addresses in their place, logs in pieces,
one clock that is wrong. What may only weaken it: less evidence. What never takes a cause away: more of what is healthy.

Each property holds for all incidents: with TOPODIAG_TESTS=deep it is asked of all, else each incident is asked of one
property, and the light ones of all.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.generate.incidents import texts
from tests.depth import DEEP
from tests.incident_evidence import (
    BUNDLE,
    INCIDENTS,
    Evidence,
    Place,
    addresses_of,
    established,
    evidence_of,
    hosts_of,
    ip_addr,
    renamed,
    renamer,
    sign,
)
from topodiag.model.errors import TopodiagError
from topodiag.model.verdict import State

LIGHT = (
    "adapter-firmware-stops", "bootstrap-over-docker0", "gsp-stops-answering", "key-error-on-one-rank",
    "preempted-in-the-night",
)  # fmt: skip
"""Incidents without captures of nodes: a diagnosis of one takes a tenth of a second."""
NAMES = tuple(sorted(INCIDENTS))
PROPERTIES = ("order", "names", "addresses", "pieces", "clock", "less", "more")
FEW = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def asked(what: str, fitting: tuple[str, ...] = NAMES) -> tuple[str, ...]:
    """The incidents of which a property is asked in this run, of those that it fits."""
    if DEEP:
        return fitting
    turn = PROPERTIES.index(what)
    return tuple(name for at, name in enumerate(fitting) if at % len(PROPERTIES) == turn)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "evidence")


def same_in_any_order(name: str, dice: random.Random, place: Place) -> bool:
    evidence = evidence_of(name)
    order = list(evidence)
    expected = sign(place.diagnose(evidence, order))
    dice.shuffle(order)
    return sign(place.diagnose(evidence, order)) == expected


@pytest.mark.parametrize("name", LIGHT)
@FEW
@given(dice=st.randoms(use_true_random=False))
def test_the_order_of_the_evidence_changes_nothing(name: str, dice: random.Random, place: Place) -> None:
    assert same_in_any_order(name, dice, place)


@pytest.mark.parametrize("name", asked("order"))
def test_the_order_of_the_evidence_of_any_incident_changes_nothing(name: str, place: Place) -> None:
    assert same_in_any_order(name, random.Random(name), place)


NAME = st.from_regex(r"[a-z]{2,5}[0-9]{0,2}-[0-9]{1,3}", fullmatch=True)


@pytest.mark.parametrize("name", LIGHT)
@FEW
@given(data=st.data())
def test_other_names_of_hosts_change_names_alone(name: str, data: st.DataObject, place: Place) -> None:
    hosts = hosts_of(name)
    _renaming(name, data.draw(st.lists(NAME, min_size=len(hosts), max_size=len(hosts), unique=True)), place)


@pytest.mark.parametrize("name", asked("names"))
def test_other_names_of_hosts_of_any_incident_change_names_alone(name: str, place: Place) -> None:
    dice = random.Random(name)
    _renaming(name, [f"{dice.choice(('aa', 'mn', 'zz'))}{at}-{dice.randrange(999)}" for at in range(40)], place)


def _renaming(name: str, names: list[str], place: Place) -> None:
    change = renamer(dict(zip(hosts_of(name), names, strict=False)))
    evidence = evidence_of(name)
    assert sign(place.diagnose(renamed(evidence, change))) == sign(place.diagnose(evidence), change)


def sources_of(evidence: Evidence) -> dict[str, Evidence]:
    """What one source gave: the texts of a folder, or a file. Captures know their own names; dumps of the flight
    recorder and lists of pods have another sense of an address."""
    table: dict[str, Evidence] = {}
    for name, data in evidence.items():
        if not name.endswith((BUNDLE, ".json", "pods.txt")):
            table.setdefault(name.partition("/")[0], {})[name] = data
    return table


@pytest.mark.parametrize("name", asked("addresses", tuple(name for name in NAMES if hosts_of(name))))
def test_addresses_in_place_of_names_in_one_source_change_no_verdict(name: str, place: Place) -> None:
    """Each host has an interface with an address, and bridges that all hosts have alike."""
    evidence, addresses = evidence_of(name), addresses_of(hosts_of(name))
    change, back = renamer(addresses), renamer({address: host for host, address in addresses.items()})
    evidence |= {f"ip/{host}.txt": ip_addr(host, address) for host, address in addresses.items()}
    expected = sign(place.diagnose(evidence), back)
    for source, held in sources_of(evidence).items():
        table = {key: change(data.decode()).encode() for key, data in held.items()}
        if source != "ip" and table != held:
            assert sign(place.diagnose(evidence | table), back) == expected, source


@FEW
@given(behind=st.integers(0, 15))
def test_whichever_rank_does_not_come_is_named(behind: int, place: Place) -> None:
    others = [rank for rank in range(16) if rank != behind]
    evidence = {f"dump/rank_{rank}.json": texts.flight(rank, 16, 700, "06:40:03").encode() for rank in others}
    evidence[f"dump/rank_{behind}.json"] = texts.flight(behind, 16, 700, "06:40:03", stuck=False).encode()
    evidence["train.err"] = texts.watchdogs(others, "06:40:03", 700).encode()
    verdict = place.diagnose(evidence)
    assert verdict.state is State.HUNG
    assert (verdict.causes[0].finding.id, verdict.causes[0].finding.where.ranks) == ("JOB006", (behind,))


LOG = re.compile(r"(?:[\w.-]+/)?[\w.-]+\.(?:log|out|err)\Z")


def logs_of(name: str) -> list[str]:
    """Logs alone: two halves of a table of nccl-tests are two measurements."""
    return [each for each, data in evidence_of(name).items() if LOG.match(each) and b" busbw " not in data]


@pytest.mark.parametrize(
    ("name", "file"), [("bootstrap-over-docker0", "rank-all.log"), ("preempted-in-the-night", "slurm-991204.out")]
)
@FEW
@given(cuts=st.lists(st.integers(1, 400), min_size=1, max_size=3))
def test_a_log_in_pieces_is_the_same_log(name: str, file: str, cuts: list[int], place: Place) -> None:
    evidence = evidence_of(name)
    expected = sign(place.diagnose(evidence))
    assert sign(place.diagnose(_in_pieces(evidence, file, cuts))) == expected


@pytest.mark.parametrize("name", asked("pieces", tuple(name for name in NAMES if logs_of(name))))
def test_a_log_of_any_incident_in_pieces_is_the_same_log(name: str, place: Place) -> None:
    evidence, dice = evidence_of(name), random.Random(name)
    file = dice.choice(logs_of(name))
    lines = evidence[file].count(b"\n")
    cuts = [dice.randrange(1, max(2, lines)) for _ in range(2)]
    assert sign(place.diagnose(_in_pieces(evidence, file, cuts))) == sign(place.diagnose(evidence)), file


def _in_pieces(evidence: Evidence, file: str, cuts: list[int]) -> Evidence:
    lines = evidence[file].splitlines(keepends=True)
    ends = sorted({min(cut, len(lines)) for cut in cuts} | {len(lines)})
    stem, _, suffix = file.rpartition(".")
    pieces = {
        f"{stem}.{number}.{suffix}": b"".join(lines[start:end])
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
        if end > start
    }
    return {key: data for key, data in evidence.items() if key != file} | pieces


@pytest.mark.parametrize("minutes", [-10, 10])
@pytest.mark.parametrize("name", asked("clock", tuple(name for name in NAMES if hosts_of(name))))
def test_one_clock_that_is_ten_minutes_wrong_changes_no_cause(name: str, minutes: int, place: Place) -> None:
    """The clock of one host: in the texts that bear its name, and in the lines that it wrote in the texts of all."""
    evidence = evidence_of(name)
    expected = sign(place.diagnose(evidence))
    for host in hosts_of(name):
        moved = {key: _by_clock_of(host, key, data, minutes) for key, data in evidence.items()}
        if moved != evidence:
            assert sign(place.diagnose(moved)) == expected, host


_TIME = re.compile(r"(?<![0-9:.])(\d\d):(\d\d):(\d\d)(?![0-9:])")


def _by_clock_of(host: str, name: str, data: bytes, minutes: int) -> bytes:
    if name.endswith(BUNDLE):
        return data  # a capture says when it was taken, after the event
    if host in name:
        return _moved(data.decode(), minutes).encode()
    wrote = re.compile(rf"(?:^|[ \]]){re.escape(host)}(?::\d+:\d+ | kernel: )")
    return "".join(
        _moved(line, minutes) if wrote.search(line) else line for line in data.decode().splitlines(keepends=True)
    ).encode()


def _moved(text: str, minutes: int) -> str:
    def later(match: re.Match[str]) -> str:
        at = (int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3]) + minutes * 60) % 86400
        return f"{at // 3600:02d}:{at % 3600 // 60:02d}:{at % 60:02d}"

    return _TIME.sub(later, text)


@pytest.mark.parametrize("name", LIGHT)
@FEW
@given(data=st.data())
def test_less_evidence_establishes_no_other_cause(name: str, data: st.DataObject, place: Place) -> None:
    evidence = evidence_of(name)
    kept = data.draw(st.lists(st.sampled_from(sorted(evidence)), min_size=1, unique=True))
    allowed = established(place.diagnose(evidence))
    assert _established_by(kept, evidence, place) <= allowed


@pytest.mark.parametrize("name", asked("less"))
def test_without_any_one_part_of_any_incident_no_other_fault_is_established(name: str, place: Place) -> None:
    """What follows from a cause is what is left where the evidence of the cause is taken away: links that are down stay
    a fact without the kernel's line that says why. What the whole evidence does not tell is never established."""
    evidence = evidence_of(name)
    names = {
        check
        for cause in place.diagnose(evidence).causes
        for check in (cause.finding.id, *(consequence.finding.id for consequence in cause.consequences))
    }
    for kept in _without_one(evidence):
        assert _established_by(kept, evidence, place) <= names, f"without {sorted(set(evidence) - set(kept))}"


def _without_one(evidence: Evidence) -> Iterator[list[str]]:
    """What is left without each file, or without each of at most four of a folder; and without each folder."""
    folders: dict[str, list[str]] = {}
    for name in evidence:
        folders.setdefault(name.rpartition("/")[0], []).append(name)
    for folder, names in folders.items():
        for one in random.Random(folder).sample(names, min(4, len(names))):
            yield [name for name in evidence if name != one]
        if folder and len(names) > 1:
            yield [name for name in evidence if name not in names]


def _established_by(kept: list[str], evidence: Evidence, place: Place) -> set[str]:
    try:
        return established(place.diagnose({key: evidence[key] for key in kept}))
    except TopodiagError:
        return set()  # what is left holds nothing that can be judged


HEALTHY = {
    "healthy/ibstat-other-7.txt": b"""\
other-7:~$ ibstat mlx5_0
CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.41.1000
\tNode GUID: 0xa088c20300ab0001
\tSystem image GUID: 0xa088c20300ab0001
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 7
\t\tSM lid: 1
\t\tPort GUID: 0xa088c20300ab0001
\t\tLink layer: InfiniBand
""",
    "healthy/kernel-other-7.txt": (
        b"2026-03-02T01:00:00+0000 other-7 kernel: nvidia-nvlink: Nvlink Core is being initialized, "
        b"major device number 234\n"
    ),
}


@pytest.mark.parametrize("name", dict.fromkeys((*LIGHT, *asked("more"))))
def test_more_evidence_of_what_is_healthy_takes_no_established_cause_away(name: str, place: Place) -> None:
    evidence = evidence_of(name)
    before = established(place.diagnose(evidence))
    assert before or name not in LIGHT
    for added, text in HEALTHY.items():
        assert before <= established(place.diagnose(evidence | {added: text})), added
