"""From evidence to a result: live equals captured, no evidence makes it raise, one bad value costs one value."""

import json
import random
import shutil
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topodiag
from tests.depth import some_of
from topodiag.app.case.live import Options
from topodiag.app.scan import live
from topodiag.app.scan import scan as diagnose
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.evidence.intake.bundle import from_memory
from topodiag.evidence.intake.collected import fixture_path, fixtures
from topodiag.evidence.intake.reader import ReadNode, read_node
from topodiag.model.errors import InputError
from topodiag.model.finding import Outcome
from topodiag_probes.bundle import Bundle
from topodiag_probes.redact import Redactor

FAULTY = "dgx-h100-gpu3-12of18-nvlink"


@cache
def captured(name: str) -> tuple[dict[str, object], dict[str, bytes]]:
    place = fixture_path(name)
    files = {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    return json.loads(files.pop("manifest.json")), files


def judge(manifest: dict[str, object], files: dict[str, bytes]) -> tuple[ReadNode, tuple[Outcome, ...]]:
    read = read_node(from_memory("test", manifest, files))
    return read, run(Subject.NODE, [read.node])


@cache
def whole(name: str) -> tuple[ReadNode, tuple[Outcome, ...]]:
    return judge(*captured(name))


def assert_nothing_failed(read: ReadNode, outcomes: tuple[Outcome, ...]) -> None:
    assert [line.why for line in read.unread if "reader failed" in line.why] == []
    assert [outcome.why for outcome in outcomes if "the check failed" in outcome.why] == []


def truncated(data: bytes, at: random.Random) -> bytes:
    return data[: at.randrange(len(data) + 1)]


def shuffled(data: bytes, at: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    at.shuffle(lines)
    return b"".join(lines)


def doubled(data: bytes, at: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    first = at.randrange(len(lines) + 1)
    return b"".join(lines[:first] + lines[first // 2 : first] * 3 + lines[first:])


def noisy(data: bytes, at: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(at.randrange(1, 40)):
        if damaged:
            damaged[at.randrange(len(damaged))] = at.randrange(256)
    return bytes(damaged)


def swapped_numbers(data: bytes, at: random.Random) -> bytes:
    hostile = [b"-1", b"0", b"99999999999999999999999999", b"1e309", b"nan", b"\xff", b"", b"0x", b"65535"]
    pieces = data.split(b" ")
    for place, piece in enumerate(pieces):
        if piece.strip().isdigit() and at.random() < 0.2:
            pieces[place] = at.choice(hostile)
    return b" ".join(pieces)


DAMAGE = (truncated, shuffled, doubled, noisy, swapped_numbers)


@pytest.mark.parametrize("name", ["sampled-nic-flaps", "l40s-pcie-acs-on", "gb200-tray"])
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), share=st.floats(0.05, 1.0))
def test_no_damage_to_the_evidence_makes_the_scan_raise(name: str, seed: int, share: float) -> None:
    at = random.Random(seed)
    manifest, files = captured(name)
    damaged = {
        path: at.choice(DAMAGE)(data, at) if at.random() < share else data
        for path, data in files.items()
        if at.random() < 0.97
    }
    assert_nothing_failed(*judge(manifest, damaged))


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32))
def test_files_under_the_wrong_kind_do_not_make_the_scan_raise(seed: int) -> None:
    at = random.Random(seed)
    manifest, files = captured(FAULTY)
    contents = list(files.values())
    assert_nothing_failed(*judge(manifest, {path: at.choice(contents) for path in files}))


def test_a_bad_value_loses_that_value_only() -> None:
    manifest, files = captured(FAULTY)
    sound, _ = judge(manifest, files)
    path = "commands/ibstat.txt"
    broken, _ = judge(manifest, {**files, path: files[path].replace(b"Rate: 400", b"Rate: \xff\xfe", 1)})
    assert broken.node.nics == sound.node.nics or [nic.name for nic in broken.node.nics] == [
        nic.name for nic in sound.node.nics
    ]
    assert broken.node.gpus == sound.node.gpus


def test_one_file_of_a_bundle_alone_is_recognised_by_its_content(tmp_path: Path) -> None:
    for name in ("nvidia-smi-topo-m", "nvidia-smi-nvlink-s", "ibstat"):
        bare = tmp_path / f"{name}.txt"
        bare.write_bytes((fixture_path(FAULTY) / "commands" / f"{name}.txt").read_bytes())
        [item] = diagnose([str(bare)]).inputs
        assert name.startswith(item.kind)


def test_a_terminal_transcript_of_several_commands_is_read_by_all_their_sources(tmp_path: Path) -> None:
    pieces = []
    for name in ("nvidia-smi-topo-m", "nvidia-smi-nvlink-s", "ibstat"):
        pieces.append(f"$ {name}\n".encode() + (fixture_path(FAULTY) / "commands" / f"{name}.txt").read_bytes())
    (tmp_path / "session.txt").write_bytes(b"\n".join(pieces))
    result = diagnose([str(tmp_path / "session.txt")])
    assert {item.kind for item in result.inputs} == {"nvidia-smi-topo", "nvidia-smi-nvlink", "ibstat"}
    assert result.unread == ()


def test_a_folder_of_loose_texts_is_one_node(tmp_path: Path) -> None:
    for name in ("nvidia-smi-topo-m", "nvidia-smi-nvlink-s"):
        (tmp_path / name).write_bytes((fixture_path(FAULTY) / "commands" / f"{name}.txt").read_bytes())
    result = diagnose([str(tmp_path)])
    assert len(result.nodes) == 1
    assert "NVL001" in {finding.id for finding in result.findings}


def test_text_of_no_known_kind_is_refused_with_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "novel.txt").write_text("It was the best of times, it was the worst of times.\n")
    with pytest.raises(InputError, match="unknown file type"):
        diagnose([str(tmp_path / "novel.txt")])


def test_an_unknown_fixture_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(InputError, match="topodiag fixtures lists them"):
        diagnose(["fixture:nope"])


def test_the_same_fault_on_many_nodes_is_one_finding(tmp_path: Path) -> None:
    shutil.copytree(fixture_path(FAULTY), tmp_path / "other")
    manifest = tmp_path / "other" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"dgx-018"', '"dgx-019"'))
    result = diagnose([f"fixture:{FAULTY}", str(tmp_path)])
    assert len(result.nodes) == 2
    assert len([finding for finding in result.findings if finding.id == "NVL001"]) == 1


def test_python_users_have_the_same_door() -> None:
    assert [finding.id for finding in topodiag.diagnose([f"fixture:{FAULTY}"]).findings] == ["NVL001"]


def test_a_saved_live_scan_reads_back_as_the_same_node(tmp_path: Path) -> None:
    saved = tmp_path / "node.tar.gz"
    now = live(options=Options(save=str(saved)))
    again = diagnose([str(saved)])
    assert again.nodes == now.nodes
    assert again.outcomes == now.outcomes
    assert again.inputs == now.inputs


def test_a_saved_folder_reads_back_as_the_same_node(tmp_path: Path) -> None:
    now = live(options=Options(save=str(tmp_path / "node")))
    assert diagnose([str(tmp_path / "node")]).nodes == now.nodes


@pytest.mark.parametrize("name", some_of(fixtures(), "redacted"))
def test_a_redacted_bundle_has_the_same_findings(name: str) -> None:
    manifest, files = captured(name)
    redacted = Redactor(b"key").bundle(Bundle(manifest, files))
    plain, hidden = whole(name), judge(redacted.manifest, redacted.files)
    assert [(outcome.check, outcome.status) for outcome in hidden[1]] == [
        (outcome.check, outcome.status) for outcome in plain[1]
    ]
    findings, still = fold(plain[1]), fold(hidden[1])
    assert [(finding.id, finding.severity, finding.where.gpus, finding.where.nics) for finding in still] == [
        (finding.id, finding.severity, finding.where.gpus, finding.where.nics) for finding in findings
    ]
    assert hidden[0].node.host != plain[0].node.host


@pytest.mark.parametrize("name", some_of(fixtures(), "reversed"))
def test_findings_are_in_the_same_order_every_time(name: str) -> None:
    manifest, files = captured(name)
    once = fold(whole(name)[1])
    again = fold(judge(manifest, dict(reversed(files.items())))[1])
    assert once == again
