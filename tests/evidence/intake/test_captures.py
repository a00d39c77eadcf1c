"""Which texts are of one node: two nodes are never merged into one phantom."""

import os
import shutil
import tarfile
from pathlib import Path

from tests.tables import examples
from topodiag.evidence.intake.captures import Captures, captures, evidence_of
from topodiag.evidence.intake.collected import fixture_path
from topodiag.evidence.intake.gather import gather

WELL, SICK = "dgx-h100-healthy", "dgx-h100-gpu3-12of18-nvlink"
TOPO, LINKS, IBSTAT = "nvidia-smi-topo-m.txt", "nvidia-smi-nvlink-s.txt", "ibstat.txt"


def text(name: str, command: str) -> bytes:
    return (fixture_path(name) / "commands" / command).read_bytes()


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def of(*paths: Path) -> Captures:
    return captures(gather([str(path) for path in paths]))


def names_of(bundles: Captures) -> list[str]:
    return sorted(capture.label or capture.host or os.path.basename(capture.name) for capture in bundles.captures)


def captured(words: str) -> str:
    """A text of a row with what the commands printed instead of their names."""
    for machine, name in (("WELL", WELL), ("SICK", SICK)):
        for word, command in (("topo", TOPO), ("links", LINKS), ("ibstat", IBSTAT)):
            if f"{machine} {word}" in words:
                words = words.replace(f"{machine} {word}", text(name, command).decode())
    return words


@examples("files", "names", "sizes", "aside", "note")
def test_texts_are_of_the_nodes_that_their_row_names(
    tmp_path: Path,
    *,
    files: dict[str, str],
    names: list[str] | None,
    sizes: list[int],
    aside: list[tuple[str, str]] | None,
    note: str | None,
) -> None:
    for path, words in files.items():
        put(tmp_path / path, captured(words).encode())
    bundles = of(tmp_path)
    assert names is None or names_of(bundles) == names
    assert [len(capture.pieces) for capture in bundles.captures] == sizes
    if aside is not None:
        assert [os.path.basename(file.path) for file in bundles.aside] == [name for name, _ in aside]
        assert all(why in file.why for (_, why), file in zip(aside, bundles.aside, strict=True))
    assert note is None or note in bundles.notes[0]


TABLE = b"""| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |
| N/A   41C    P0            131W /  700W |   71234MiB /  81559MiB |    100%      Default |
"""


def test_reports_of_nvidia_smi_that_are_named_for_two_hosts_are_two_nodes(tmp_path: Path) -> None:
    for name in ("w01-nvidia-smi.txt", "w02-nvidia-smi.txt"):
        put(tmp_path / "hosts" / name, TABLE)
    for name in ("nvidia-smi-before.txt", "nvidia-smi-2.txt", "nvidia-smi.run3.txt", "nvidia-smi-L.txt"):
        put(tmp_path / "moments" / name, TABLE)
    assert names_of(of(tmp_path / "hosts")) == ["w01", "w02"]
    assert len(of(tmp_path / "moments").captures) == 1


def test_one_device_with_two_serials_is_two_nodes(tmp_path: Path) -> None:
    put(tmp_path / "x.txt", text(WELL, IBSTAT))
    put(tmp_path / "y.txt", text(SICK, IBSTAT))
    other = text(WELL, IBSTAT) != text(SICK, IBSTAT)
    assert len(of(tmp_path).captures) == (2 if other else 1)


def test_the_same_bundle_as_a_folder_and_as_an_archive_counts_once(tmp_path: Path) -> None:
    shutil.copytree(fixture_path(WELL), tmp_path / "node")
    with tarfile.open(tmp_path / "node.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "node" / "manifest.json", "manifest.json")
        for name in ("commands", "json", "trees"):
            packed.add(tmp_path / "node" / name, name)
    bundles = of(tmp_path)
    assert names_of(bundles) == ["dgx-017"]
    assert "the same capture as" in bundles.aside[0].why


QOS = b"root@dgx-017:~# mlnx_qos -i ibp24s0\nDCBX mode: OS controlled\nPriority trust state: dscp\n"


def test_a_text_that_adds_to_the_bundle_of_its_host_is_of_that_node(tmp_path: Path) -> None:
    shutil.copytree(fixture_path(WELL), tmp_path / "bundle")
    put(tmp_path / "qos.txt", QOS)
    bundles = of(tmp_path)
    assert names_of(bundles) == ["dgx-017"]
    assert [len(capture.pieces) for capture in bundles.captures] == [2]
    read = evidence_of(bundles.captures[0], gather([str(tmp_path)]))
    assert str(tmp_path / "qos.txt") in {blob.name for blob in read.blobs}


def test_a_text_of_another_host_or_of_what_the_bundle_looked_at_stays_apart(tmp_path: Path) -> None:
    shutil.copytree(fixture_path(WELL), tmp_path / "bundle")
    put(tmp_path / "other.txt", QOS.replace(b"017", b"018"))
    put(tmp_path / "later" / "links.txt", b"root@dgx-017:~# nvidia-smi nvlink -s\n" + text(WELL, LINKS))
    assert len(of(tmp_path).captures) == 3


def test_two_captures_of_one_host_are_judged_one_by_one_and_a_text_is_of_neither(tmp_path: Path) -> None:
    for name, fixture in (("monday", WELL), ("tuesday", SICK)):
        shutil.copytree(fixture_path(fixture), tmp_path / name)
        manifest = tmp_path / name / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"dgx-018"', '"dgx-017"'))
    bundles = of(tmp_path)
    assert names_of(bundles) == ["dgx-017#1", "dgx-017#2"]
    assert "2 captures of dgx-017, judged one by one" in bundles.notes[0]
    put(tmp_path / "qos.txt", QOS)
    assert len(of(tmp_path).captures) == 3


def test_an_archive_of_folders_is_a_node_for_each(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as packed:
        for name in (WELL, SICK):
            packed.add(fixture_path(name), name)
    assert names_of(of(tmp_path / "all.tar.gz")) == ["dgx-017", "dgx-018"]


def test_kernel_logs_named_for_two_hosts_are_two_nodes_and_two_logs_of_one_tool_are_one(tmp_path: Path) -> None:
    line = "[ 100.000001] mlx5_core 0000:5e:00.0: Port module event: module 0, Cable plugged\n"
    for name in ("gpu-h06.txt", "gpu-h07.txt"):
        (tmp_path / name).write_text(line + f"[ 101.000001] NVRM: Xid (PCI:0000:{name[6]}b:00): 31, pid=1, name=a, x\n")
    bundles = captures(gather([str(tmp_path)]))
    assert sorted(capture.label for capture in bundles.captures) == ["gpu-h06", "gpu-h07"]
    one = tmp_path / "one"
    one.mkdir()
    for name in ("dmesg.txt", "journal.txt"):
        (one / name).write_text(line)
    assert len(captures(gather([str(one)])).captures) == 1
