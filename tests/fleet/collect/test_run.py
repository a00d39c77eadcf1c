"""What becomes of each node: asked twice only where it was not reached, kept whatever happens, never asked in vain."""

import io
import json
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.valid import assert_valid
from topodiag.checks.host.driver import ProbeHangs
from topodiag.evidence.intake.bundle import open_evidence
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.reader import read_node
from topodiag.fleet.collect import run as module
from topodiag.fleet.collect.interface import Ear, Request, Transport
from topodiag.fleet.collect.run import collect
from topodiag.model.collect import Collection, NodeAnswer, State
from topodiag.model.errors import InputError
from topodiag.model.finding import Severity
from topodiag.report.documents.from_model import schema
from topodiag_probes.bundle import Bundle, write_tar
from topodiag_probes.send import Sender

BOOT = "b9fd7a66-18bf-41da-8421-5081a0e49215"
Act = Callable[[str, Sender, Ear], None]


def manifest(node: str, status: str = "ok") -> dict[str, object]:
    kept = "files/uptime.txt" if status == "ok" else ""
    items = [{"id": "nvidia-smi-q", "kind": "raw", "file": kept, "status": status, "why": "", "sample": 0}]
    return {"schema": "1.0", "host": node, "boot_id": BOOT, "time": "2026-11-22T22:10:58Z", "items": items}


def packed(node: str, status: str = "ok") -> bytes:
    stream = io.BytesIO()
    write_tar(Bundle(manifest(node, status), {"files/uptime.txt": b"12.5 3.0\n"}), stream)
    return stream.getvalue()


def answers(node: str, sender: Sender, ear: Ear) -> None:
    sender.hello(node, BOOT)
    sender.bundle(packed(node), manifest(node))
    ear.ends(node, 0)


def refuses(node: str, sender: Sender, ear: Ear) -> None:
    ear.complains(node, b"Welcome to the machine")
    ear.complains(node, f"ssh: connect to host {node} port 22: Connection refused".encode())
    ear.ends(node, 255)


def hangs(node: str, sender: Sender, ear: Ear) -> None:
    sender.hello(node, BOOT)
    for item in ("nvidia-smi-q", "nvml"):
        sender.progress("start", item, 0.0)
    sender.busy()
    ear.late(node)


def dies(node: str, sender: Sender, ear: Ear) -> None:
    sender.hello(node, BOOT)
    data = packed(node)
    full = io.BytesIO()
    Sender(full, "m" * 16, node).bundle(data * 3, manifest(node))
    sender._write(b"data " + full.getvalue().splitlines()[0].split(b" ", 3)[3] + b"\n")
    ear.complains(node, b"Connection to gpu3 closed by remote host.")
    ear.ends(node, 255)


class Played(Transport):
    """Nodes that act as they are told, through the collector's own writer of lines."""

    name = "played"

    def __init__(self, acts: dict[str, Act]) -> None:
        self.acts = acts
        self.asked: list[tuple[str, ...]] = []

    def ask(self, request: Request, nodes: Sequence[str], ear: Ear, within_s: float) -> bool:
        self.asked.append(tuple(nodes))
        for node in nodes:
            ear.begins(node)
            ear.hears(node, b"** a banner **")
            stream = _Lines(node, ear)
            self.acts[node](node, Sender(stream, request.mark, node), ear)  # type: ignore[arg-type]
        return True


class _Lines:
    """A stream that hands each line to the ear."""

    def __init__(self, node: str, ear: Ear) -> None:
        self.node, self.ear = node, ear

    def write(self, line: bytes) -> None:
        self.ear.hears(self.node, line.rstrip(b"\n"))

    def flush(self) -> None: ...


def collected(to: Path, acts: dict[str, Act], *, resume: bool = True) -> tuple[Collection, Played]:
    transport = Played(acts)
    return collect(transport, list(acts), str(to), Request(b"", ""), whole_s=60, resume=resume), transport


def by_node(done: Collection) -> dict[str, NodeAnswer]:
    return {answer.node: answer for answer in done.answers}


def test_each_node_has_its_state_and_its_reason(tmp_path: Path) -> None:
    done, _ = collected(tmp_path, {"gpu1": answers, "gpu2": refuses, "gpu3": dies, "gpu4": hangs})
    node_answers = by_node(done)
    assert [node_answers[f"gpu{n}"].state for n in range(1, 5)] == [
        State.ANSWERED, State.REFUSED, State.GARBAGE, State.TIMED_OUT,
    ]  # fmt: skip
    assert node_answers["gpu2"].why == "ssh: connect to host gpu2 port 22: Connection refused"
    assert "closed by remote host" in node_answers["gpu3"].why
    assert "waiting for nvidia-smi-q, nvml" in node_answers["gpu4"].why
    assert not done.complete


def test_a_node_that_was_not_reached_is_asked_once_more_and_a_node_that_hung_is_not(tmp_path: Path) -> None:
    _, transport = collected(tmp_path, {"gpu1": answers, "gpu2": refuses, "gpu3": dies, "gpu4": hangs})
    assert transport.asked == [("gpu1", "gpu2", "gpu3", "gpu4"), ("gpu2",)]


def test_what_hung_is_a_bundle_of_that_node_that_names_what_hung(tmp_path: Path) -> None:
    done, _ = collected(tmp_path, {"gpu4": hangs})
    evidence = open_evidence(str(tmp_path / by_node(done)["gpu4"].file))
    assert evidence.host == "gpu4"
    assert [(item.id, item.status) for item in evidence.missing] == [("nvidia-smi-q", "timeout"), ("nvml", "timeout")]


def test_a_node_that_hung_is_a_finding_that_names_its_probes(tmp_path: Path) -> None:
    done, _ = collected(tmp_path, {"gpu4": hangs})
    node = read_node(open_evidence(str(tmp_path / by_node(done)["gpu4"].file))).node
    (finding,) = ProbeHangs().judge(node).findings
    assert (finding.id, finding.severity, finding.where.nodes) == ("HST005", Severity.ERROR, ("gpu4",))
    assert finding.message.startswith("nvidia-smi-q, nvml hang")


def test_the_bundle_that_says_what_hung_goes_when_the_node_answers(tmp_path: Path) -> None:
    collected(tmp_path, {"gpu4": hangs, "gpu4-b": hangs})
    collected(tmp_path, {"gpu4": answers})
    assert [path.name.partition("-b9fd")[0] for path in tmp_path.glob("*.hung.tar.gz")] == ["gpu4-b"]


def test_a_second_call_asks_only_nodes_without_a_good_bundle(tmp_path: Path) -> None:
    collected(tmp_path, {"gpu1": answers, "gpu2": refuses, "gpu3": answers})
    next(tmp_path.glob("gpu3-*")).write_bytes(b"cut")
    done, transport = collected(tmp_path, {"gpu1": answers, "gpu2": answers, "gpu3": answers})
    assert transport.asked == [("gpu2", "gpu3")]
    assert [answer.node for answer in done.before] == ["gpu1"]
    assert done.complete
    _, third = collected(tmp_path, {"gpu1": answers, "gpu2": answers, "gpu3": answers})
    assert third.asked == []


def test_again_asks_all(tmp_path: Path) -> None:
    collected(tmp_path, {"gpu1": answers})
    _, transport = collected(tmp_path, {"gpu1": answers}, resume=False)
    assert transport.asked == [("gpu1",)]


def test_names_hold_host_boot_and_time_and_the_sums_are_those_of_sha256sum(tmp_path: Path) -> None:
    done, _ = collected(tmp_path, {"gpu1": answers})
    assert done.answers[0].file == "gpu1-b9fd7a66-20261122T221058Z.tar.gz"
    assert (tmp_path / "SHA256SUMS").read_text() == f"{done.answers[0].sha256}  {done.answers[0].file}\n"


def test_the_sums_are_for_their_owner_alone_and_follow_no_link(tmp_path: Path) -> None:
    collected(tmp_path / "own", {"gpu1": answers})
    assert stat.S_IMODE((tmp_path / "own" / "SHA256SUMS").stat().st_mode) == 0o600
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "SHA256SUMS").symlink_to(tmp_path / "theirs")
    with pytest.raises(InputError, match="cannot be written"):
        collected(tmp_path / "other", {"gpu1": answers})
    assert not (tmp_path / "theirs").exists()


def test_a_probe_that_hung_in_a_bundle_that_came_is_named(tmp_path: Path) -> None:
    def slow(node: str, sender: Sender, ear: Ear) -> None:
        sender.hello(node, BOOT)
        sender.bundle(packed(node, "timeout"), manifest(node))

    done, _ = collected(tmp_path, {"gpu1": slow})
    assert done.answers[0].state is State.ANSWERED
    assert done.answers[0].hung_probes == ("nvidia-smi-q",)


def test_what_comes_whole_and_is_no_bundle_is_garbage(tmp_path: Path) -> None:
    def lies(node: str, sender: Sender, ear: Ear) -> None:
        sender.bundle(b"#!/bin/sh\n", manifest(node))

    done, _ = collected(tmp_path, {"gpu1": lies})
    assert done.answers[0].state is State.GARBAGE
    assert {path.name for path in tmp_path.iterdir()} == {"SHA256SUMS", "collect.json"}


def test_what_compare_would_refuse_is_garbage_with_its_reason(tmp_path: Path) -> None:
    def newer(node: str, sender: Sender, ear: Ear) -> None:
        stream = io.BytesIO()
        write_tar(Bundle({**manifest(node), "schema": "9.0"}, {}), stream)
        sender.bundle(stream.getvalue(), manifest(node))

    def cut(node: str, sender: Sender, ear: Ear) -> None:
        sender.bundle(packed(node)[:-60], manifest(node))

    done, _ = collected(tmp_path, {"gpu1": newer, "gpu2": cut})
    assert [answer.state for answer in done.answers] == [State.GARBAGE, State.GARBAGE]
    assert "schema 9.0" in done.answers[0].why
    assert "damaged archive" in done.answers[1].why


def test_a_collect_json_of_another_program_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "collect.json").write_text('{"mine": 1}')
    with pytest.raises(InputError, match="not of topodiag"):
        collected(tmp_path, {"gpu1": answers})
    assert (tmp_path / "collect.json").read_text() == '{"mine": 1}'


def test_what_the_first_attempt_said_stands_where_the_second_had_no_time(tmp_path: Path) -> None:
    class Slow(Played):
        def ask(self, request: Request, nodes: Sequence[str], ear: Ear, within_s: float) -> bool:
            return super().ask(request, nodes if len(self.asked) == 0 else (), ear, within_s) and len(self.asked) == 1

    done = collect(Slow({"gpu2": refuses}), ["gpu2"], str(tmp_path), Request(b"", ""), whole_s=60)
    assert [(answer.state, "refused" in answer.why) for answer in done.answers] == [(State.REFUSED, True)]


def test_ctrl_c_leaves_what_came_and_says_what_did_not(tmp_path: Path) -> None:
    def interrupted(node: str, sender: Sender, ear: Ear) -> None:
        sender.hello(node, BOOT)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collected(tmp_path, {"gpu1": answers, "gpu2": interrupted, "gpu3": answers})
    written = json.loads((tmp_path / "collect.json").read_text())
    assert [answer["state"] for answer in written["answers"]] == ["answered", "not asked", "not asked"]
    assert written["stopped"] == "interrupted"
    assert not list(tmp_path.glob(".*.part"))


def test_a_whole_that_is_over_keeps_what_came(tmp_path: Path) -> None:
    class Late(Played):
        def ask(self, request: Request, nodes: Sequence[str], ear: Ear, within_s: float) -> bool:
            super().ask(request, nodes[:1], ear, within_s)
            return False

    done = collect(Late({"gpu1": answers}), ["gpu1", "gpu2"], str(tmp_path), Request(b"", ""), whole_s=1)
    assert [answer.state for answer in done.answers] == [State.ANSWERED, State.NOT_ASKED]
    assert "time of the whole" in done.stopped


def test_answers_are_written_while_nodes_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_S", 0.0)
    seen: list[int] = []

    def looks(node: str, sender: Sender, ear: Ear) -> None:
        seen.append(json.loads((tmp_path / "collect.json").read_text())["counts"]["answered"])
        answers(node, sender, ear)

    collected(tmp_path, {"gpu1": answers, "gpu2": looks})
    assert seen == [1]


def test_a_reader_of_the_folder_is_told_which_nodes_left_nothing(tmp_path: Path) -> None:
    collected(tmp_path, {"gpu1": answers, "gpu2": refuses, "gpu3": refuses, "gpu4": hangs})
    intake = gather([str(tmp_path)])
    assert len(intake.pieces) == 2  # the answer, and what hung
    assert intake.aside == ()
    assert [note for note in intake.notes if "left no evidence: gpu[2-3]" in note]


def test_the_answers_follow_their_schema_and_have_the_sum_of_each_file(tmp_path: Path) -> None:
    collected(tmp_path, {"gpu1": answers, "gpu2": refuses, "gpu4": hangs})
    written = json.loads((tmp_path / "collect.json").read_text())
    assert_valid(written, schema("collect"))
    there = {answer["file"]: answer["sha256"] for answer in written["answers"] if answer["file"]}
    assert there == {path.name: sha256(path.read_bytes()).hexdigest() for path in tmp_path.glob("*.tar.gz")}
    assert [each["what"] for each in written["not_observed"]] == ["gpu2"]


def test_a_node_has_the_time_of_connection_capture_and_sample() -> None:
    assert replace(Request(b"", "m"), deadline_s=5.0, sample_s=3.0).node_s == 28.0
