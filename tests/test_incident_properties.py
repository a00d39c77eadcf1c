"""What must not change a verdict: the order of the evidence, names, how logs are cut, one clock that is wrong. What may
only weaken it: less evidence. What never takes a cause away: more evidence of what is healthy.
"""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import topodiag
from benchmarks.incidents import FOLDER
from fixtures.generate.incidents import texts
from topodiag.model.errors import TopodiagError
from topodiag.model.verdict import CauseStatus, State, Verdict

LIGHT = (
    "adapter-firmware-stops", "bootstrap-over-docker0", "gsp-stops-answering", "key-error-on-one-rank",
    "preempted-in-the-night",
)  # fmt: skip
"""Incidents without captures of nodes: a diagnosis of one takes a tenth of a second."""
FEW = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
Evidence = dict[str, str]
Sign = tuple[State, tuple[tuple[object, ...], ...]]


@dataclass(frozen=True)
class Place:
    """A folder for evidence of one diagnosis after the other."""

    path: Path

    def diagnose(self, evidence: Evidence, order: Iterable[str] = ()) -> Verdict:
        shutil.rmtree(self.path, ignore_errors=True)
        for name, text in evidence.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        asked = [str(self.path / name) for name in order] or [str(self.path)]
        verdict = topodiag.diagnose(asked).result.verdict
        assert verdict is not None
        return verdict


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "evidence")


@cache
def evidence_of(name: str) -> Evidence:
    """The texts of an incident, without its truth."""
    folder = FOLDER / name
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "truth.json":
            data = path.read_bytes()
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            found[path.relative_to(folder).as_posix().removesuffix(".gz")] = data.decode()
    return found


def sign(verdict: Verdict, renamed: Callable[[str], str] = str) -> Sign:
    """What a reader takes from a verdict: the state, and causes with their place, status and consequences."""
    causes = []
    for cause in verdict.causes:
        where = cause.finding.where
        nodes = tuple(sorted(renamed(node) for node in where.nodes))
        below = tuple(sorted((each.finding.id, each.depth) for each in cause.consequences))
        causes.append((cause.finding.id, nodes, where.gpus, tuple(sorted(where.ranks)), cause.status, below))
    return verdict.state, tuple(causes)


def established(verdict: Verdict) -> set[str]:
    return {each.finding.id for each in verdict.causes if each.status is CauseStatus.ESTABLISHED}


@pytest.mark.parametrize("name", LIGHT)
@FEW
@given(dice=st.randoms(use_true_random=False))
def test_the_order_of_the_evidence_changes_nothing(name: str, dice: object, place: Place) -> None:
    evidence = evidence_of(name)
    order = list(evidence)
    expected = sign(place.diagnose(evidence, order))
    dice.shuffle(order)  # type: ignore[attr-defined]
    assert sign(place.diagnose(evidence, order)) == expected


HOSTS = {
    "adapter-firmware-stops": ("cw-87", "cw-88"), "bootstrap-over-docker0": ("box1", "box2"),
    "gsp-stops-answering": ("tr-17", "tr-18"), "key-error-on-one-rank": ("sol-1", "sol-2"),
    "preempted-in-the-night": ("q-01", "q-02"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIGHT)
@FEW
@given(
    names=st.lists(
        st.from_regex(r"[a-z]{2,5}[0-9]{0,2}-[0-9]{1,3}", fullmatch=True), min_size=2, max_size=2, unique=True
    )
)
def test_other_names_of_hosts_change_names_alone(name: str, names: list[str], place: Place) -> None:
    evidence, hosts = evidence_of(name), HOSTS[name]
    given_names = dict(zip(hosts, names, strict=True))

    def renamed(text: str) -> str:
        return re.sub("|".join(map(re.escape, hosts)), lambda match: given_names[match[0]], text)

    expected = sign(place.diagnose(evidence), renamed)
    assert sign(place.diagnose({renamed(file): renamed(text) for file, text in evidence.items()})) == expected


@FEW
@given(behind=st.integers(0, 15))
def test_whichever_rank_does_not_come_is_named(behind: int, place: Place) -> None:
    others = [rank for rank in range(16) if rank != behind]
    evidence = {f"dump/rank_{rank}.json": texts.flight(rank, 16, 700, "06:40:03") for rank in others}
    evidence[f"dump/rank_{behind}.json"] = texts.flight(behind, 16, 700, "06:40:03", stuck=False)
    evidence["train.err"] = texts.watchdogs(others, "06:40:03", 700)
    verdict = place.diagnose(evidence)
    assert verdict.state is State.HUNG
    assert (verdict.causes[0].finding.id, verdict.causes[0].finding.where.ranks) == ("JOB006", (behind,))


@pytest.mark.parametrize(
    ("name", "file"), [("bootstrap-over-docker0", "rank-all.log"), ("preempted-in-the-night", "slurm-991204.out")]
)
@FEW
@given(cuts=st.lists(st.integers(1, 400), min_size=1, max_size=3))
def test_a_log_in_pieces_is_the_same_log(name: str, file: str, cuts: list[int], place: Place) -> None:
    evidence = evidence_of(name)
    expected = sign(place.diagnose(evidence))
    lines = evidence[file].splitlines(keepends=True)
    ends = sorted({min(cut, len(lines)) for cut in cuts} | {len(lines)})
    stem, _, suffix = file.rpartition(".")
    pieces = {
        f"{stem}.{number}.{suffix}": "".join(lines[start:end])
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
        if end > start
    }
    assert sign(place.diagnose({key: text for key, text in evidence.items() if key != file} | pieces)) == expected


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("adapter-firmware-stops", ("kernel/cw-88.txt",)),
        ("gsp-stops-answering", ("journal-tr-18.txt",)),
        ("key-error-on-one-rank", ("sol-2.err",)),
    ],
)
@pytest.mark.parametrize("minutes", [-10, 10])
def test_one_clock_that_is_ten_minutes_wrong_changes_no_cause(
    name: str, files: tuple[str, ...], minutes: int, place: Place
) -> None:
    evidence = evidence_of(name)
    expected = sign(place.diagnose(evidence))
    moved = {key: _moved(text, minutes) if key in files else text for key, text in evidence.items()}
    assert moved != evidence
    assert sign(place.diagnose(moved)) == expected


def _moved(text: str, minutes: int) -> str:
    def later(match: re.Match[str]) -> str:
        at = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3]) + minutes * 60
        return f"{at // 3600:02d}:{at % 3600 // 60:02d}:{at % 60:02d}"

    return re.sub(r"(?<![0-9:])(\d\d):(\d\d):(\d\d)(?![0-9:])", later, text)


@pytest.mark.parametrize("name", LIGHT)
@FEW
@given(data=st.data())
def test_less_evidence_establishes_no_other_cause(name: str, data: st.DataObject, place: Place) -> None:
    evidence = evidence_of(name)
    allowed = established(place.diagnose(evidence))
    kept = data.draw(st.lists(st.sampled_from(sorted(evidence)), min_size=1, unique=True))
    try:
        verdict = place.diagnose({key: evidence[key] for key in kept})
    except TopodiagError:
        return  # what is left holds nothing that can be judged
    assert established(verdict) <= allowed


HEALTHY = {
    "healthy/ibstat-other-7.txt": """\
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
        "2026-03-02T01:00:00+0000 other-7 kernel: nvidia-nvlink: Nvlink Core is being initialized, "
        "major device number 234\n"
    ),
}


@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.parametrize("added", sorted(HEALTHY))
def test_more_evidence_of_what_is_healthy_takes_no_established_cause_away(name: str, added: str, place: Place) -> None:
    evidence = evidence_of(name)
    before = established(place.diagnose(evidence))
    assert before
    assert before <= established(place.diagnose(evidence | {added: HEALTHY[added]}))


@pytest.mark.parametrize("name", ["gpu-lost-no-capture", "port-flaps-at-night"])
def test_without_any_one_part_of_an_incident_with_captures_no_other_cause_is_established(name: str) -> None:
    folder = FOLDER / name
    parts = [path for path in sorted(folder.iterdir()) if path.name != "truth.json"]

    def of(chosen: list[Path]) -> set[str]:
        verdict = topodiag.diagnose([str(path) for path in chosen]).result.verdict
        assert verdict is not None
        return established(verdict)

    allowed = of(parts)
    for left_out in parts:
        assert of([path for path in parts if path != left_out]) <= allowed, f"without {left_out.name}"
