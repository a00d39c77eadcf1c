"""From evidence to a result, by one front door and one judge: nothing raises, one bad value costs one value."""

import json
import random
import shutil
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.test_bench import printed
from tests.cli.small_log import log
from tests.depth import some_of
from topodiag.app.bench import bench
from topodiag.app.case.live import Options
from topodiag.app.case.opening import one_node
from topodiag.app.diagnose import diagnose
from topodiag.app.judge.runs import BenchOptions
from topodiag.app.logs import logs
from topodiag.app.scan import live, scan
from topodiag.app.topo import check_topology
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.evidence.intake.bundle import from_memory
from topodiag.evidence.intake.collected import fixture_path, fixtures
from topodiag.evidence.intake.reader import ReadNode, read_node
from topodiag.model.errors import InputError
from topodiag.model.finding import Outcome, Severity
from topodiag.model.result import Result
from topodiag.report.places import Places
from topodiag.verdict.headline import causes_of
from topodiag_probes.bundle import Bundle
from topodiag_probes.redact import Redactor

WELL, SICK = "dgx-h100-healthy", "dgx-h100-gpu3-12of18-nvlink"


def two_nodes(place: Path, first: str, second: str) -> Path:
    shutil.copytree(fixture_path(first), place / "one")
    shutil.copytree(fixture_path(second), place / "two")
    return place


@pytest.mark.parametrize("order", [(WELL, SICK), (SICK, WELL)])
def test_two_nodes_in_one_folder_are_two_and_the_sick_one_is_named(tmp_path: Path, order: tuple[str, str]) -> None:
    result = scan([str(two_nodes(tmp_path, *order))])
    assert {node.host for node in result.nodes} == {"dgx-017", "dgx-018"}
    assert result.worst is Severity.ERROR
    assert {finding.where.nodes for finding in result.findings} == {("dgx-018",)}
    read = [file.path for file in result.inputs]
    assert len(set(read)) == len(read), "each file of a bundle is named with its node"
    assert {text.partition("/")[0] for text in read} == {"dgx-017", "dgx-018"}
    quoted = result.findings[0]
    assert Places(result).spell(quoted.evidence[0], quoted).startswith("dgx-018/")


def test_what_belongs_to_no_node_is_named_with_its_command(tmp_path: Path) -> None:
    two_nodes(tmp_path, WELL, SICK)
    (tmp_path / "job.log").write_text(log())
    (tmp_path / "hosts").write_text("gpu001 slots=8\n")
    texts = [gap.why for gap in scan([str(tmp_path)]).not_observed if gap.what == "part of the input"]
    assert f"{tmp_path}/job.log: not read, it is an NCCL log; topodiag logs {tmp_path}/job.log reads it" in texts
    assert any("a hostfile; topodiag place audit" in why for why in texts)


def test_a_broken_bundle_among_good_ones_is_said_and_alone_is_an_error(tmp_path: Path) -> None:
    two_nodes(tmp_path, WELL, SICK)
    (tmp_path / "one" / "manifest.json").write_text('{"schema": "9.0", "tool": "topodiag-probe 9", "items": []}')
    result = scan([str(tmp_path)])
    assert [node.host for node in result.nodes] == ["dgx-018"]
    assert any("newer than this program" in gap.why for gap in result.not_observed)
    with pytest.raises(InputError, match="newer than this program"):
        scan([str(tmp_path / "one")])


def test_a_log_alone_is_no_node_and_the_command_for_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(log())
    with pytest.raises(InputError, match=r"it is an NCCL log \(topodiag logs .*job\.log reads it\)"):
        scan([str(tmp_path / "job.log")])


def test_a_question_about_one_node_names_the_nodes_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds 2 nodes: dgx-017, dgx-018"):
        one_node(str(two_nodes(tmp_path, WELL, SICK)))


def test_dumps_of_the_flight_recorder_alone_are_a_job(tmp_path: Path) -> None:
    for rank in range(2):
        dump = {"version": "2.4", "rank": rank, "pg_config": {"0": {"name": "0", "ranks": "[0, 1]"}}, "entries": []}
        (tmp_path / f"trace_{rank}").write_text(json.dumps(dump))
    (job,) = logs([str(tmp_path)]).jobs
    assert len(job.flight) == 2


def test_a_bundle_stands_for_the_topology_that_nccl_would_detect() -> None:
    assert check_topology(f"fixture:{WELL}").worst is None
    result = check_topology(f"fixture:{SICK}")
    assert {finding.id for finding in result.findings} == {"NVL001", "TOP004"}
    assert any("no topology file is given" in gap.why for gap in result.not_observed)


def test_the_whole_diagnosis_takes_nodes_and_jobs_together(tmp_path: Path) -> None:
    two_nodes(tmp_path, WELL, SICK)
    (tmp_path / "job.log").write_text(log())
    result = diagnose([str(tmp_path)])
    assert (len(result.nodes), len(result.jobs)) == (2, 1)
    assert "NVL001" in {finding.id for finding in result.findings}
    assert not any("job.log" in gap.why for gap in result.not_observed if gap.what == "part of the input")


# --- `bench` and `diagnose` of the same evidence: one case, one judge. What bench adds is its view of the runs


FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FOLDERS = [path for kind in ("incidents", "live", "tables") for path in sorted((FIXTURES / kind).iterdir())]
TEXTS = sorted((FIXTURES / "field").glob("*.json"))
SIGNS = ("busbw", "_perf")
"""What a text of nccl-tests has."""


def without_truth(case: Path, place: Path) -> Path:
    """The evidence of a fixture in a folder of its own."""
    folder = place / "case"
    if case.is_dir():
        return Path(shutil.copytree(case, folder, ignore=shutil.ignore_patterns("truth*", "README.md")))
    folder.mkdir()
    held = json.loads(case.read_text()).get("inputs") if case.parent.name == "field" else None
    for number, paste in enumerate(held or ()):
        file = folder / (paste.get("name") or f"{number}.txt")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(paste["text"])
    if held is None:
        shutil.copy(case, folder)
    return folder


def judged(result: Result) -> tuple[object, ...]:
    """What a verdict establishes, and by which words."""
    verdict = result.verdict
    assert verdict is not None
    causes = [(cause.finding.id, cause.finding.message, cause.status, cause.price) for cause in verdict.causes]
    return verdict.state, verdict.headline, causes, verdict.ruled_out


def has_table(path: Path) -> bool:
    texts = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return any(sign.encode() in text.read_bytes() for text in texts for sign in SIGNS)


TABLES = [path for path in (*FOLDERS, *TEXTS) if has_table(path)]


@pytest.mark.parametrize("case", some_of(TABLES, "judged alike"), ids=lambda path: path.stem)
def test_a_table_is_judged_alike_by_both(case: Path, tmp_path: Path) -> None:
    paths = [str(without_truth(case, tmp_path))]
    whole = diagnose(paths)
    if whole.benchmarks:
        assert judged(bench(paths)) == judged(whole)


def test_the_first_cause_of_a_run_is_that_of_the_diagnosis(tmp_path: Path) -> None:
    paths = [str(without_truth(FIXTURES / "incidents" / "slot-at-four-lanes", tmp_path))]
    result = bench(paths)
    (benchmark,) = result.benchmarks
    assert causes_of(benchmark, result)[0].finding.message == "GPU6 trained at x4 instead of x16"
    assert not benchmark.hypotheses  # what the numbers suggest gives way to what is seen
    assert benchmark.gate is not None
    assert benchmark.gate.why.endswith("; established: GPU6 trained at x4 instead of x16")


def test_a_named_machine_is_judged_as_one_beside_the_table(tmp_path: Path) -> None:
    table, capture = tmp_path / "out.log", "fixture:dgx-h100-gpu3-12of18-nvlink"
    table.write_text(printed(180))
    named = bench([str(table)], options=BenchOptions(machine=(capture,)))
    assert judged(named) == judged(diagnose([str(table), capture]))


def test_an_error_is_a_run_only_where_the_text_tells_of_nccl_tests(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text(printed(270))
    (tmp_path / "other.log").write_text("srun: error: n1: task 0: Exited with exit code 1\n")
    result = bench([str(tmp_path)])
    assert [Path(benchmark.run.source).name for benchmark in result.benchmarks] == ["out.log"]


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
        [item] = scan([str(bare)]).inputs
        assert name.startswith(item.kind)


def test_a_terminal_transcript_of_several_commands_is_read_by_all_their_sources(tmp_path: Path) -> None:
    pieces = []
    for name in ("nvidia-smi-topo-m", "nvidia-smi-nvlink-s", "ibstat"):
        pieces.append(f"$ {name}\n".encode() + (fixture_path(FAULTY) / "commands" / f"{name}.txt").read_bytes())
    (tmp_path / "session.txt").write_bytes(b"\n".join(pieces))
    result = scan([str(tmp_path / "session.txt")])
    assert {item.kind for item in result.inputs} == {"nvidia-smi-topo", "nvidia-smi-nvlink", "ibstat"}
    assert result.unread == ()


def test_a_folder_of_loose_texts_is_one_node(tmp_path: Path) -> None:
    for name in ("nvidia-smi-topo-m", "nvidia-smi-nvlink-s"):
        (tmp_path / name).write_bytes((fixture_path(FAULTY) / "commands" / f"{name}.txt").read_bytes())
    result = scan([str(tmp_path)])
    assert len(result.nodes) == 1
    assert "NVL001" in {finding.id for finding in result.findings}


def test_the_same_fault_on_many_nodes_is_one_finding(tmp_path: Path) -> None:
    shutil.copytree(fixture_path(FAULTY), tmp_path / "other")
    manifest = tmp_path / "other" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"dgx-018"', '"dgx-019"'))
    result = scan([f"fixture:{FAULTY}", str(tmp_path)])
    assert len(result.nodes) == 2
    assert len([finding for finding in result.findings if finding.id == "NVL001"]) == 1


@pytest.mark.parametrize("name", ["node.tar.gz", "node"])
def test_a_saved_live_scan_reads_back_as_the_same_node(tmp_path: Path, name: str) -> None:
    now = live(options=Options(save=str(tmp_path / name)))
    again = scan([str(tmp_path / name)])
    assert again.nodes == now.nodes
    if name == "node.tar.gz":  # the files of a folder are inputs by their paths
        assert again.outcomes == now.outcomes
        assert again.inputs == now.inputs


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
