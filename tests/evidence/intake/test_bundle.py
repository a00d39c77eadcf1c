"""The evidence of a node: a folder, an archive, a single file, or in memory."""

import bz2
import gzip
import json
import lzma
import os
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.files import laid, tarred
from tests.tables import examples
from topodiag.evidence.intake import archives
from topodiag.evidence.intake import bundle as bundles
from topodiag.evidence.intake.archives import members
from topodiag.evidence.intake.bundle import Evidence, from_memory, open_evidence
from topodiag.evidence.intake.one_file import open_blob
from topodiag.evidence.intake.reader import as_samples, read_node
from topodiag.evidence.intake.same_node import host_of_text
from topodiag.evidence.interface import Blob
from topodiag.evidence.signatures.wrappers import of_one_host
from topodiag.model.errors import InputError
from topodiag.model.node import Node

MANIFEST = {
    "schema": "1.0",
    "host": "gpu-001",
    "time": "2026-11-21T02:14:09Z",
    "privilege": "user",
    "samples": [{"number": 0, "interval_s": 0.0}],
    "items": [
        {"id": "ibstat", "kind": "ibstat", "argv": ["ibstat"], "file": "commands/ibstat.txt", "status": "ok", "rc": 0},
        {"id": "lspci", "kind": "lspci", "argv": ["lspci"], "file": "", "status": "absent", "why": "not installed"},
    ],
}
FILES = {"manifest.json": json.dumps(MANIFEST).encode(), "commands/ibstat.txt": b"CA 'mlx5_0'\n"}


def archive(path: Path, files: dict[str, bytes], *extra: tarfile.TarInfo) -> str:
    path.write_bytes(tarred(files, *extra, mode="w:gz"))
    return str(path)


def folder(path: Path, files: dict[str, bytes]) -> str:
    return str(laid(path, files))


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = target
    return member


def test_an_archive_and_its_folder_hold_the_same_evidence(tmp_path: Path) -> None:
    packed = open_evidence(archive(tmp_path / "b.tar.gz", FILES))
    plain = open_evidence(folder(tmp_path / "b", FILES))
    assert packed.host == plain.host == "gpu-001"
    assert [blob.data for blob in packed.blobs] == [blob.data for blob in plain.blobs] == [b"CA 'mlx5_0'\n"]
    assert [item.id for item in packed.missing] == ["lspci"]


def test_the_capture_in_memory_is_the_same_evidence(tmp_path: Path) -> None:
    live = from_memory("live", MANIFEST, FILES)
    saved = open_evidence(archive(tmp_path / "b.tar.gz", FILES))
    assert [(blob.name, blob.data, blob.item) for blob in live.blobs] == [
        (blob.name, blob.data, blob.item) for blob in saved.blobs
    ]


def test_a_bundle_packed_below_one_folder_is_found(tmp_path: Path) -> None:
    inside = {f"gpu-001/{name}": data for name, data in FILES.items()}
    assert open_evidence(archive(tmp_path / "b.tar.gz", inside)).host == "gpu-001"


def test_a_folder_without_a_manifest_is_its_files(tmp_path: Path) -> None:
    evidence = open_evidence(folder(tmp_path, {"topo.txt": b"x", ".hidden": b"x", "empty": b" \n"}))
    assert [Path(blob.name).name for blob in evidence.blobs] == ["topo.txt"]


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd"])
def test_hostile_members_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="lies outside"):
        open_evidence(archive(tmp_path / "b.tar.gz", FILES, special(name, tarfile.REGTYPE)))


@examples("name", "kind", "link", "words")
def test_what_is_no_file_in_an_archive_is_said_and_not_read(
    tmp_path: Path, name: str, kind: str, link: str, words: str
) -> None:
    member = special(name, getattr(tarfile, kind), link)
    evidence = open_evidence(archive(tmp_path / "b.tar.gz", FILES, member))
    assert [blob.name for blob in evidence.blobs] == ["commands/ibstat.txt"]
    assert [line.why for line in evidence.unread] == [words]


@pytest.mark.parametrize(
    ("files", "members", "sizes", "says"),
    [
        ({"big": 2000}, 9, 1000, "'big' is larger"),
        ({"one": 90_000, "two": 90_000}, 9, 100_000, "unpacks to more than"),
        ({}, 1, 100_000, "more than 1 members"),
    ],
)
def test_an_archive_with_too_much_in_it_is_refused(
    *, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, int], members: int, sizes: int, says: str
) -> None:
    limits = {"MAX_FILE_BYTES": sizes, "MAX_TOTAL_BYTES": 100_000, "MAX_FILES": members, "MAX_MEMBERS": members}
    for (name, limit), module in zip(limits.items(), (bundles, archives, bundles, archives), strict=True):
        monkeypatch.setattr(module, name, limit)
    with pytest.raises(InputError, match=says):
        open_evidence(archive(tmp_path / "b.tar.gz", FILES | {name: bytes(size) for name, size in files.items()}))


def test_a_newer_schema_is_refused_and_says_what_to_do_and_a_newer_minor_one_is_read(tmp_path: Path) -> None:
    newer, minor = (
        archive(tmp_path / schema, {**FILES, "manifest.json": json.dumps({**MANIFEST, "schema": schema}).encode()})
        for schema in ("2.0", "1.9")
    )
    with pytest.raises(InputError, match=r"schema 2\.0, newer .*upgrade topodiag"):
        open_evidence(newer)
    assert open_evidence(minor).host == "gpu-001"


@pytest.mark.parametrize("manifest", [b"{", b"[]", b"{}", b'{"schema": "x"}', b"[" * 100_000])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, manifest: bytes) -> None:
    with pytest.raises(InputError, match=r"manifest\.json"):
        open_evidence(archive(tmp_path / "b.tar.gz", {"manifest.json": manifest}))


@pytest.mark.parametrize("entry", [None, 3, "x", {}, {"id": 4}, {"id": "a", "argv": 7, "file": [], "sample": "x"}])
def test_a_bad_item_costs_that_item_only(tmp_path: Path, entry: object) -> None:
    manifest = {**MANIFEST, "items": [entry, *MANIFEST["items"]]}  # type: ignore[misc]
    files = {**FILES, "manifest.json": json.dumps(manifest).encode()}
    evidence = open_evidence(archive(tmp_path / "b.tar.gz", files))
    assert [blob.item.id for blob in evidence.blobs if blob.item] == ["ibstat"]


def test_an_item_whose_file_is_missing_is_said(tmp_path: Path) -> None:
    evidence = open_evidence(folder(tmp_path, {"manifest.json": FILES["manifest.json"]}))
    assert "commands/ibstat.txt is not in the bundle" in evidence.unread[0].why


def test_a_truncated_archive_is_damaged_not_a_crash(tmp_path: Path) -> None:
    whole = tarred({**FILES, "noise": os.urandom(4000)}, mode="w:gz")
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged archive"):
        open_evidence(str(tmp_path / "cut.tar.gz"))


def test_missing_empty_and_special_inputs_have_one_line_each(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        open_evidence(str(tmp_path / "absent"))
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        open_evidence(str(tmp_path / "empty"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is no plain file"):
        open_evidence(str(tmp_path / "pipe"))
    (tmp_path / "void").mkdir()
    with pytest.raises(InputError, match="without files"):
        open_evidence(str(tmp_path / "void"))


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    place = Path(folder(tmp_path / "b", FILES))
    (place / "commands" / "ibstat.txt").unlink()
    (place / "commands" / "ibstat.txt").symlink_to("/etc/hostname")
    assert open_evidence(str(place)).blobs == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2000), st.integers(0, 2000), st.binary(max_size=30))
def test_any_damage_to_an_archive_is_an_input_error_or_readable(
    tmp_path: Path, cut: int, at: int, noise: bytes
) -> None:
    whole = tarred(FILES, mode="w:gz")
    damaged = whole[:at] + noise + whole[at + len(noise) :]
    damaged = damaged[: max(1, len(damaged) - cut)]
    (tmp_path / "d.tar.gz").write_bytes(damaged)
    with suppress(InputError):
        open_evidence(str(tmp_path / "d.tar.gz"))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
@pytest.mark.parametrize("read", [members, open_evidence])
def test_an_extended_header_of_an_archive_is_bounded(
    tmp_path: Path, kind: bytes, read: Callable[[str], object]
) -> None:
    header = tarfile.TarInfo("long")
    header.type, header.size = kind, 100 << 20
    path = tmp_path / "b.tar.gz"
    path.write_bytes(gzip.compress(header.tobuf() + b"c" * 200_000))
    with pytest.raises(InputError, match="a header of 104857600 bytes"):
        read(str(path))


# --- texts that a parallel shell has put a host's name before each line of ------------------------------------

MATRIX = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\t0-55\t0\nGPU1\tNV18\t X \t56-111\t1\n"


def prefixed(prefix: str, text: str = MATRIX) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize("prefix", ["gpu-001: ", "gpu-001.example.org: ", "0: ", " 3: ", "c1_n2:"])
def test_a_prefix_that_all_lines_share_is_taken_off(prefix: str) -> None:
    assert of_one_host(prefixed(prefix)) == (prefix.strip(" :"), MATRIX)


@examples("text")
def test_text_without_one_shared_prefix_is_left_alone(text: str) -> None:
    assert of_one_host(text) == ("", text)


def test_a_prefixed_file_is_read_as_the_file_that_it_was_and_its_lines_keep_their_numbers() -> None:
    node = read_node(Evidence("topo.txt", blobs=[Blob("topo.txt", prefixed("gpu-001: ").encode())]))
    assert [item.kind for item in node.inputs] == ["nvidia-smi-topo"]
    numa = node.node.gpus[1].numa
    assert (numa.value, numa.origin.line) == (1, 3)


@pytest.mark.parametrize("clock", ["2026-03-02T07:02:{:02d}+0000 n1", "07:02:{:02d} n1", "2026-03-02_07:02:{:02d} n1"])
def test_a_clock_before_each_line_is_no_label(clock: str) -> None:
    text = "".join(clock.format(at) + " kernel: NVRM: Xid (PCI:0000:61:00): 119, pid=1\n" for at in range(5))
    assert of_one_host(text)[0] == ""
    assert host_of_text(Blob("kernel.txt", text.encode())) in ("", "n1")


# --- two pasted readings of one counter are two samples where names or a repeated command say so, and nowhere else

FILE = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors"


def node(texts: dict[str, str]) -> Node:
    evidence = Evidence("pasted")
    evidence.blobs.extend(Blob(name, text.replace("{}", FILE).encode()) for name, text in texts.items())
    return read_node(evidence).node


@examples("texts", "first", "growth", "line")
def test_readings_are_samples_where_names_or_commands_say_so(
    texts: dict[str, str], first: int, growth: int | None, line: int | None
) -> None:
    """The texts by their names, where `{}` is the path of the counter; what the counter was first, by how much it grew,
    and the line of the later reading."""
    counter = node(texts).nics[0].ports[0].counters["port_rcv_errors"]
    assert (counter.first.value, counter.delta) == (first, growth)
    assert line is None or counter.later.origin.line == line


def test_one_command_on_two_hosts_is_no_second_sample() -> None:
    text = f"root@n1:~# grep . {FILE}\n{FILE}:3\nroot@n2:~# grep . {FILE}\n{FILE}:9\n"
    (whole,) = as_samples([Blob("paste.txt", text.encode())])
    assert not whole.later


def test_a_command_for_another_interface_is_no_second_sample() -> None:
    text = "$ ethtool -S eth0 | grep crc\n rx_crc_errors_phy: 3\n$ ethtool -S eth1 | grep crc\n rx_crc_errors_phy: 9\n"
    machine = node({"paste.txt": text})
    assert [device.counters["rx_crc_errors_phy"].delta for device in machine.netdevs] == [None, None]


def test_counters_of_ethtool_that_grep_picked_are_read_and_compared() -> None:
    run = "$ ethtool -S eth0 | grep crc\n     rx_crc_errors_phy: {}\n"
    (device,) = node({"paste.txt": run.format(3) + run.format(40)}).netdevs
    assert device.counters["rx_crc_errors_phy"].delta == 37


def test_captured_texts_are_left_as_the_manifest_has_them() -> None:
    blob = Blob("a", b"x")
    assert as_samples([blob]) == [blob]


@examples("text", "host")
def test_a_text_names_its_host_by_uname_and_the_journal(text: str, host: str) -> None:
    assert host_of_text(Blob("kernel.txt", text.encode())) == host


# --- one file of text, packed or not


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_text_is_read_as_it_was_before_it_was_packed(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(pack(b"node1 slots=8\n"))
    assert open_blob(str(path)).data == b"node1 slots=8\n"
