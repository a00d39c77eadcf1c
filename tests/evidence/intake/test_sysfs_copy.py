from pathlib import Path

from topodiag.evidence.intake.collected import is_copy, text_of_copy
from topodiag.evidence.intake.gather import gather


def laid(top: Path) -> Path:
    folder = top / "sys" / "class" / "kfd" / "kfd" / "topology" / "nodes" / "1"
    folder.mkdir(parents=True)
    (folder / "properties").write_text("simd_count 1216\nlocation_id 5632\n")
    (folder / "blob").write_bytes(b"\0\1")
    (folder / "large").write_bytes(b"x" * 5000)
    return top


def test_a_copy_is_one_text_of_its_small_files(tmp_path: Path) -> None:
    folder = laid(tmp_path) / "sys"
    assert is_copy(str(folder), ["class"])
    assert not is_copy(str(folder), ["texts"])
    text, head = text_of_copy(str(folder))
    path = b"sys/class/kfd/kfd/topology/nodes/1/properties"
    assert text == head == b"= %s\tsimd_count 1216\n= %s\tlocation_id 5632\n" % (path, path)


def test_a_copy_is_read_by_the_readers_of_its_parts(tmp_path: Path) -> None:
    (piece,) = gather([str(laid(tmp_path))]).pieces
    assert piece.sources == ("sys-kfd",)
