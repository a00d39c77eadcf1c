"""One pass over a text for all sources, and who is asked for it."""

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.files import filed
from tests.tables import examples, texts
from topodiag.api import diagnose
from topodiag.evidence.intake import survey
from topodiag.evidence.intake.captures import captures, evidence_of
from topodiag.evidence.intake.fanout import parts_of
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.kind_of_file import FileKind
from topodiag.evidence.intake.reader import as_samples, read_node
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind

FILLER = b"srun: job 7703 queued and waiting for resources\n" * 6000
"""Longer than what is read of both ends of a file together."""
TABLE = b"""\
# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20
#       size         count      type   redop    root     time   algbw   busbw #wrong
  8589934592    2147483648     float     sum      -1    81000  106.05  198.84      0
"""
IBSTAT = b"CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n"
XID = b"[ 8122.4] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"
ERROR = b"n1:41:77 [0] NCCL WARN Bootstrap : no socket interface found\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "bz2": bz2.compress,
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


@pytest.mark.parametrize("packer", PACKERS)
@examples("middle", "kind", "sources")
def test_what_stands_in_the_middle_is_found(
    tmp_path: Path, middle: bytes, kind: Kind, sources: tuple[str, ...], packer: str
) -> None:
    (piece,) = gather([str(filed(tmp_path, "job.out", PACKERS[packer](FILLER + middle + FILLER)))]).pieces
    assert kind in piece.kinds
    assert set(sources) <= set(piece.sources)


@pytest.mark.parametrize("middle", [TABLE, IBSTAT, XID, ERROR])
def test_standard_input_is_read_like_a_file(tmp_path: Path, middle: bytes) -> None:
    data = FILLER + middle + FILLER
    (of_file,) = gather([str(filed(tmp_path, "job.out", data))]).pieces
    intake = gather(["-"], stdin=io.BytesIO(data))
    (of_stream,) = intake.pieces
    assert (of_stream.kinds, of_stream.sources) == (of_file.kinds, of_file.sources)
    assert intake.stdin.read() == data


def test_a_text_of_no_known_kind_stays_one(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(FILLER + FILLER)
    assert [piece.kinds for piece in gather([str(tmp_path / "x.txt")]).pieces] == [(Kind.TEXT,)]


def test_no_reader_is_asked_about_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(survey, "_readers", lambda _, block, *__: asked.append(len(block)) or ())
    survey.survey([bytes(1 << 20), XID, bytes(1 << 20)], "text", FileKind((Kind.TEXT,)))
    assert len(asked) == 1


def test_a_large_text_of_a_node_is_looked_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = filed(tmp_path, "report.txt", XID + FILLER + IBSTAT + FILLER)
    intake = gather([str(file)])
    evidence = evidence_of(captures(intake).captures[0], intake)
    again = read_node(replace(evidence, blobs=[replace(blob, sources=()) for blob in evidence.blobs]))
    monkeypatch.setattr(survey, "sources_in", None)
    once = read_node(evidence)
    assert [file.kind for file in once.inputs] == ["ibstat", "kernel-log"]
    assert (once.node, once.inputs) == (again.node, again.inputs)


def test_a_part_of_a_text_has_not_the_sources_of_the_whole() -> None:
    pair = b"$ ethtool -S eth0\nNIC statistics:\n rx_discards_phy: 1\n"
    parts = as_samples([Blob("t", pair + pair, sources=("ethtool",))])
    assert [part.sources for part in parts] == [(), ()]


# --- One text with the output of several hosts: each host has its own lines, at their numbers, whoever wrote them down
#


TEXTS = texts(__file__)
PORT = TEXTS["port"]
OWN = {f"gpu-0{at}": PORT.format(at, 200 if at == 3 else 400) for at in range(1, 5)}
FORMS = {
    "pdsh": "\n".join(f"{host}: {line}" for host, text in OWN.items() for line in text.split("\n")),
    "pdsh, mixed": "\n".join(f"{host}: {text.splitlines()[at]}" for at in range(9) for host, text in OWN.items())
    + "\npdsh@login: gpu-09: ssh exited with exit code 255\n",
    "dshbak": "\n".join(f"----------------\n{host}\n----------------\n{text}" for host, text in OWN.items()),
    "ansible": "\n".join(f"{host} | CHANGED | rc=0 >>\n{text}\n" for host, text in OWN.items()),
    "pssh": "\n".join(f"[{at}] 10:32:11 [SUCCESS] {host}\n{text}" for at, (host, text) in enumerate(OWN.items(), 1)),
    "loop": "\n".join(f"=== {host} ===\n{text}" for host, text in OWN.items()),
    "salt": "\n".join(f"{host}:\n    " + text.replace("\n", "\n    ") for host, text in OWN.items()),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_host_has_its_own_lines(form: str) -> None:
    parts = parts_of(FORMS[form])
    assert {host: [line for line in text.split("\n") if line] for host, text in parts.items()} == {
        host: text.split("\n") for host, text in OWN.items()
    }


@pytest.mark.parametrize("form", FORMS)
def test_the_port_of_one_host_that_is_slower_is_found_by_its_siblings(tmp_path: Path, form: str) -> None:
    path = filed(tmp_path, "out.txt", FORMS[form])
    document = json.loads(diagnose(path).to_json())
    [finding] = document["findings"]
    assert (finding["id"], finding["where"]["nodes"]) == ("NIC002", ["gpu-03"])
    [line] = finding["evidence"]
    assert line["source"] == f"{path}/gpu-03"
    if form != "ansible -o":  # whose lines have no numbers of their own
        assert "Rate: 200" in FORMS[form].split("\n")[line["line"] - 1]


def test_standard_input_is_cut_as_well() -> None:
    pieces = gather(["-"], stdin=io.BytesIO(FORMS["loop"].encode())).pieces
    assert [(piece.name, piece.host) for piece in pieces] == [(f"<stdin>/{host}", host) for host in OWN]


def test_hosts_that_print_the_same_are_named_as_a_set() -> None:
    rule = "-" * 15
    text = f"{rule}\ngpu-[01-03,07] (4)\n{rule}\n{PORT}\n{rule}\ngpu-09\n{rule}\n{PORT}x"
    assert list(parts_of(text)) == ["gpu-01", "gpu-02", "gpu-03", "gpu-07", "gpu-09"]


def test_a_host_that_printed_nothing_of_use_is_named_aside(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(FORMS["ansible"] + "gpu-05 | FAILED | rc=127 >>\nbash: ibstat: command not found\n")
    intake = gather([str(path)])
    assert [piece.host for piece in intake.pieces] == list(OWN)
    assert [file.path for file in intake.aside] == [f"{path}/gpu-05"]


@examples("text")
def test_texts_of_one_machine_and_tables_stay_whole(text: str) -> None:
    assert parts_of(text) == {}


def test_the_log_of_a_job_stays_whole(tmp_path: Path) -> None:
    line = "{0}: {0}:4242:4242 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.{1}<0>\n"
    path = filed(tmp_path, "job.log", "".join(line.format(f"gpu-0{at}", at) for at in (1, 1, 2, 2)))
    [piece] = gather([str(path)]).pieces
    assert (piece.kind, piece.member) == (Kind.NCCL_LOG, "")


@given(
    st.lists(
        st.tuples(st.sampled_from(["gpu-01", "gpu-02", "n7"]), st.text(st.characters(exclude_categories=["Cc", "Zs"]))),
        max_size=20,
    )
)
def test_no_line_is_lost_and_none_is_of_two_hosts(lines: list[tuple[str, str]]) -> None:
    text = "\n".join(f"{host}: {words}" for host, words in lines)
    for host, own in parts_of(text).items():
        held = own.split("\n")
        assert all(words == (lines[at][1] if lines[at][0] == host else "") for at, words in enumerate(held))
