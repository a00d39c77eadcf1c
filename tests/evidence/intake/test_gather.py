"""Any mix of paths becomes sorted pieces of evidence; the rest is left aside with the reason."""

import builtins
import gzip
import io
import lzma
import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files import laid, tarred, zipped
from tests.tables import examples
from topodiag.evidence.intake import archives
from topodiag.evidence.intake.bundle import open_evidence
from topodiag.evidence.intake.collected import is_copy, text_of_copy
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.pieces import Intake, folded, read_piece
from topodiag.evidence.kinds import Kind
from topodiag.model.errors import InputError

RECORD = b"node1:11:12 [0] NCCL INFO Using network IB\n"
MATRIX = b"\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n"
TABLE = b"# nThread 1 nGpus 8 minBytes 8\n"
MANIFEST = b'{"schema": "1.0", "tool": "topodiag-probe 0.1.0", "host": "gpu-001", "items": []}'


def kinds(intake: Intake, below: Path) -> dict[str, Kind]:
    return {os.path.relpath(piece.name, below): piece.kind for piece in intake.pieces}


def tar(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> str:
    path.write_bytes(tarred(members, mode=mode))
    return str(path)


def test_a_mix_is_sorted_by_content(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(RECORD)
    (tmp_path / "two.gz").write_bytes(gzip.compress(MATRIX))
    (tmp_path / "three.xz").write_bytes(lzma.compress(RECORD))
    (tmp_path / "run.txt").write_bytes(TABLE)
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "manifest.json").write_bytes(MANIFEST)
    (tmp_path / "node" / "dmesg.txt").write_bytes(RECORD)
    tar(tmp_path / "other.tar.gz", {"manifest.json": MANIFEST})
    intake = gather([str(tmp_path)])
    assert kinds(intake, tmp_path) == {
        "node": Kind.BUNDLE, "one": Kind.NCCL_LOG, "other.tar.gz": Kind.BUNDLE, "run.txt": Kind.NCCL_TESTS,
        "three.xz": Kind.NCCL_LOG, "two.gz": Kind.NODE_TEXT,
    }  # fmt: skip
    assert intake.aside == ()
    assert {piece.host for piece in intake.of(Kind.BUNDLE)} == {"gpu-001"}
    assert [read_piece(intake, piece).data for piece in intake.of(Kind.NCCL_LOG)] == [RECORD, RECORD]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_an_archive_is_its_members(tmp_path: Path, mode: str) -> None:
    members = {"a/nccl.log": RECORD, "b/topo.txt": MATRIX, "n/manifest.json": MANIFEST, "n/x.txt": b"x", "e": b""}
    path = tar(tmp_path / "mix", members, mode)
    intake = gather([path])
    assert kinds(intake, tmp_path / "mix") == {
        "a/nccl.log": Kind.NCCL_LOG, "b/topo.txt": Kind.NODE_TEXT, "n": Kind.BUNDLE,
    }  # fmt: skip
    assert read_piece(intake, intake.of(Kind.NODE_TEXT)[0]).data == MATRIX
    assert [file.why for file in intake.aside] == ["it is empty"]


@pytest.mark.parametrize(("line", "kind"), [(RECORD, Kind.NCCL_LOG), (b"a plain line\n", Kind.TEXT)])
def test_a_long_member_is_known_by_all_of_it(tmp_path: Path, line: bytes, kind: Kind) -> None:
    filler = b"a line of a program\n" * 8000
    path = tar(tmp_path / "mix", {"a/out.log": filler + line + filler})
    assert kinds(gather([path]), tmp_path / "mix") == {"a/out.log": kind}


def test_a_zip_is_its_members(tmp_path: Path) -> None:
    (tmp_path / "mix.zip").write_bytes(zipped({"gpu-001/manifest.json": MANIFEST, "job.log": RECORD}))
    assert kinds(gather([str(tmp_path / "mix.zip")]), tmp_path / "mix.zip") == {
        "gpu-001": Kind.BUNDLE, "job.log": Kind.NCCL_LOG,
    }  # fmt: skip


def test_what_lies_outside_an_archive_is_refused(tmp_path: Path) -> None:
    intake = gather([tar(tmp_path / "evil.tar", {"ok.log": RECORD, "../outside": RECORD}, "w")])
    assert intake.pieces == ()
    assert "lies outside" in intake.aside[0].why


def test_pipes_sockets_and_devices_are_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert [file.why for file in gather([str(tmp_path)]).aside] == ["a pipe", "a socket"]
    assert gather(["/dev/zero"]).aside[0].why == "is a device, not a file"


def test_a_folder_that_holds_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(RECORD)
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    intake = gather([str(tmp_path)])
    assert len(intake.pieces) == 1
    assert [file.why for file in intake.aside] == ["a link to nowhere"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_noted_and_the_rest_goes_on(tmp_path: Path) -> None:
    laid(tmp_path, {"a.log": RECORD, "secret": RECORD})
    (tmp_path / "secret").chmod(0)
    intake = gather([str(tmp_path)])
    assert (len(intake.pieces), len(intake.aside)) == (1, 1)


def test_standard_input_is_a_piece_whose_first_bytes_are_still_there() -> None:
    intake = gather(["-"], stdin=io.BytesIO(RECORD * 9000))
    assert intake.pieces[0].kind is Kind.NCCL_LOG
    assert read_piece(intake, intake.pieces[0]).data == RECORD * 9000


def test_a_shipped_machine_and_a_pattern_are_paths(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_bytes(RECORD)
    intake = gather(["fixture:dgx-h100-healthy", str(tmp_path / "*.log")])
    assert [piece.kind for piece in intake.pieces if piece.host] == [Kind.NCCL_LOG, Kind.BUNDLE] or len(
        intake.pieces
    ) == 2
    with pytest.raises(InputError, match="matches no file"):
        gather([str(tmp_path / "*.txt")])


def test_many_files_left_aside_are_one_line(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.log").write_bytes(RECORD)
    (line,) = folded(gather([str(tmp_path)]).beside(Kind.BUNDLE))
    assert line.startswith("20 files: not read, it is an NCCL log: ")
    assert line.endswith(f"; topodiag logs {tmp_path} reads them")


def test_a_log_of_any_length_is_told_by_its_ends(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    with path.open("wb") as stream:
        stream.write(b"epoch 1\n" * 100_000)
        stream.truncate(10 << 30)  # a hole of 10 GiB
        stream.seek(10 << 30)
        stream.write(RECORD)
    began = time.process_time()
    assert gather([str(path)]).pieces[0].kind is Kind.NCCL_LOG
    assert time.process_time() - began < 1


_CONTENT = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [RECORD, MATRIX, TABLE, MANIFEST, b"", b" \n", gzip.compress(RECORD), b"\x1f\x8b\x08", b"PK\x03\x04x"]
    ),
)
_NAME = st.sampled_from(["a", "b.log", "c.tar.gz", ".hidden", "manifest.json", "plan-1.json", "results.jsonl", "x y"])
_TREES = st.dictionaries(st.lists(_NAME, min_size=1, max_size=3).map("+/".join), _CONTENT, max_size=6)


@given(_TREES, st.randoms())
def test_every_file_of_any_tree_is_a_piece_or_left_aside(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, bytes], at: object
) -> None:
    top = laid(tmp_path_factory.mktemp("tree"), tree)
    intake = gather([str(top)])
    pieces = [piece.name for piece in intake.pieces]
    texts = [*pieces, *(file.path for file in intake.aside), *(note.partition(": ")[0] for note in intake.notes)]
    swept = [piece.name for piece in intake.of(Kind.SWEEP)]
    bundles = [piece.name for piece in intake.of(Kind.BUNDLE)]
    for name in tree:
        path = str(top / name)
        owners = [text for text in (*texts, *swept, *bundles) if path == text or path.startswith(f"{text}/")]
        assert owners, path
    assert pieces == sorted(pieces)
    each_by_itself = [str(entry) for entry in top.iterdir()]
    if each_by_itself and str(top) not in bundles + swept:
        at.shuffle(each_by_itself)  # type: ignore[attr-defined]
        assert [piece.name for piece in gather(each_by_itself).pieces] == [
            piece.name for piece in gather(sorted(each_by_itself)).pieces
        ]


def test_a_file_that_reading_empties_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kmsg").touch()
    monkeypatch.setattr(builtins, "open", lambda *_: pytest.fail("it was opened"))
    with pytest.raises(InputError, match="is emptied by being read"):
        open_evidence(str(tmp_path / "kmsg"))
    assert [left_out.why for left_out in gather([str(tmp_path / "kmsg")]).aside] == ["is emptied by being read"]


def test_a_link_to_a_folder_elsewhere_is_said_and_not_followed(tmp_path: Path) -> None:
    given, inside, outside = tmp_path / "given", tmp_path / "given" / "inside", tmp_path / "outside"
    for folder in (given, inside, outside):
        folder.mkdir()
        (folder / "rank.log").write_bytes(RECORD)
    (given / "away").symlink_to(outside)
    (given / "here").symlink_to(inside)
    intake = gather([str(given)])
    assert {piece.path for piece in intake.pieces} == {str(given / "rank.log"), str(given / "here" / "rank.log")}
    assert [note for note in intake.notes if "a link to a folder elsewhere, not read" in note]


@pytest.mark.parametrize("inner", ["tar", "zip"])
def test_an_archive_in_an_archive_is_read_as_the_folder_that_it_was(tmp_path: Path, inner: str) -> None:
    capture = tarred({"manifest.json": MANIFEST, "text/dmesg.txt": RECORD}, mode="w:gz")
    members = {"in/gpu-001.tar.gz": capture, "in/logs.zip": zipped({"rank.log": RECORD})}
    whole = tmp_path / "whole"
    whole.write_bytes(tarred(members, mode="w:gz") if inner == "tar" else zipped(members))
    intake = gather([str(whole)])
    assert kinds(intake, whole) == {"in/gpu-001.tar.gz": Kind.BUNDLE, "in/logs.zip/rank.log": Kind.NCCL_LOG}
    assert intake.aside == ()


def test_a_broken_archive_in_an_archive_costs_itself(tmp_path: Path) -> None:
    capture = tarred({"rank.log": RECORD * 40})
    intake = gather([tar(tmp_path / "whole.tar", {"broken.tar": capture[:600], "rank.log": RECORD}, "w")])
    assert [piece.member for piece in intake.pieces if piece.kind is Kind.NCCL_LOG][-1] == "rank.log"


def test_archives_in_archives_unpack_to_no_more_than_one_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives._Depth.__init__, "__defaults__", (0, 4096))
    inner = tarred({f"{at}.log": RECORD * 40 for at in range(4)}, mode="w:gz")
    intake = gather([tar(tmp_path / "whole.tar", {"inner.tar.gz": inner}, "w")])
    assert intake.pieces == ()
    assert "in archives" in intake.aside[0].why


def test_a_long_member_of_an_archive_is_read_whole(tmp_path: Path) -> None:
    text = RECORD * 4000
    intake = gather([tar(tmp_path / "whole.tar", {"rank.log": text})])
    assert read_piece(intake, intake.pieces[0]).data == text


@pytest.mark.parametrize(("later", "host"), [("tin-4", "tin-4"), ("ramdisk", "ramdisk"), ("", "ramdisk")])
def test_a_journal_is_of_the_host_that_it_names_last(tmp_path: Path, later: str, host: str) -> None:
    """The initial RAM disk has a name of its own, until the machine takes its name."""
    line = "Mar 04 05:06:07 {}kernel: usb 1-1: new device number 7\n"
    journal = tmp_path / "boot.txt"
    journal.write_text(line.format("ramdisk ") * 2000 + line.format(f"{later} " if later else "") * 2000)
    assert [piece.host for piece in gather([str(journal)]).pieces] == [host]


# --- documents and source files beside evidence accuse nobody -------------------------------------------------

XID = "[ 8122.4] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"
PAPER = """\
#       size         count      type   redop    root     time   algbw   busbw #wrong
  8589934592    2147483648     float     sum      -1    81000  106.05  198.84      0
"""


@examples("name")
def test_a_paper_beside_a_table_is_left_aside_with_the_reason(tmp_path: Path, name: str) -> None:
    (tmp_path / "all_reduce.txt").write_text(PAPER)
    (tmp_path / name).write_text(XID)
    intake = gather([str(tmp_path)])
    assert [Path(piece.path).name for piece in intake.pieces] == ["all_reduce.txt"]
    assert [(Path(aside.path).name, "document" in aside.why) for aside in intake.aside] == [(name, True)]


@pytest.mark.parametrize("name", ["notes.md", "README.md"])
def test_a_paper_that_is_all_there_is_or_is_named_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(XID)
    assert len(gather([str(tmp_path)]).pieces) == 1
    (tmp_path / "all_reduce.txt").write_text(PAPER)
    assert len(gather([str(tmp_path), str(tmp_path / name)]).pieces) == 2


@pytest.mark.parametrize("name", ["dmesg.txt", "news.log", "readme-kernel.log", "python.log"])
def test_other_names_are_evidence(tmp_path: Path, name: str) -> None:
    (tmp_path / "all_reduce.txt").write_text(PAPER)
    (tmp_path / name).write_text(XID)
    assert name in {Path(piece.path).name for piece in gather([str(tmp_path)]).pieces}


# --- the text of one piece of evidence ------------------------------------------------------------------------


def test_of_a_plain_text_that_is_larger_than_its_reader_takes_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node1 slots=8\n", encoding="utf-8")
    intake = gather([str(tmp_path / "hosts")])
    piece = intake.pieces[0]
    assert read_piece(intake, piece, piece.size).data == b"node1 slots=8\n"
    (tmp_path / "hosts").unlink()  # which reading would say
    with pytest.raises(InputError, match="is larger than"):
        read_piece(intake, piece, piece.size - 1)
    with pytest.raises(InputError, match="cannot be read"):
        read_piece(intake, replace(piece, coding=("gzip",)), piece.size - 1)


# --- A copy of sysfs ------------------------------------------------------------------------------------------


def kfd_tree(top: Path) -> Path:
    folder = top / "sys" / "class" / "kfd" / "kfd" / "topology" / "nodes" / "1"
    folder.mkdir(parents=True)
    laid(folder, {"properties": "simd_count 1216\nlocation_id 5632\n", "blob": b"\0\1", "large": b"x" * 5000})
    return top


def test_a_copy_is_one_text_of_its_small_files(tmp_path: Path) -> None:
    folder = kfd_tree(tmp_path) / "sys"
    assert is_copy(str(folder), ["class"])
    assert not is_copy(str(folder), ["texts"])
    path = b"sys/class/kfd/kfd/topology/nodes/1/properties"
    assert text_of_copy(str(folder)) == b"= %s\tsimd_count 1216\n= %s\tlocation_id 5632\n" % (path, path)


def test_a_copy_is_read_by_the_readers_of_its_parts(tmp_path: Path) -> None:
    (piece,) = gather([str(kfd_tree(tmp_path))]).pieces
    assert piece.sources == ("sys-kfd",)
