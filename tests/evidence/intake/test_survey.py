"""What stands behind the first and last bytes of a text is found, packed or not."""

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from tests.files import filed
from tests.tables import examples
from topodiag.evidence.intake import survey
from topodiag.evidence.intake.captures import captures, evidence_of
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
