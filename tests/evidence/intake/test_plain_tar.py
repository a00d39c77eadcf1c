"""The quick reader of archives says what the standard library's says, or nothing."""

import gzip
import io
import tarfile
from collections.abc import Callable

import pytest

from topodiag.evidence.intake import plain_tar

FILES = {"manifest.json": b"{}", "trees/a.tree": b"x" * 1300, "empty.txt": b"", "é.txt": b"utf-8", "b" * 99: b"long"}


def plain_members(data: bytes, most_bytes: int = 1 << 20, most_members: int = 9) -> dict[str, bytes] | None:
    return plain_tar.plain_members(data, most_bytes, most_members)


def packed(change: Callable[[tarfile.TarInfo], None] = lambda member: None, form: int = tarfile.USTAR_FORMAT) -> bytes:
    bytes_io = io.BytesIO()
    with tarfile.open(fileobj=bytes_io, mode="w", format=form) as archive:
        for name, data in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            change(member)
            archive.addfile(member, io.BytesIO(data))
    return bytes_io.getvalue()


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_plain_archive_is_read_to_the_byte(form: int, pack: Callable[[bytes], bytes]) -> None:
    assert plain_members(pack(packed(form=form))) == FILES


def test_folders_hold_nothing_and_prefixes_are_part_of_names() -> None:
    bytes_io = io.BytesIO()
    name = "/".join(["folder" * 5] * 6)
    with tarfile.open(fileobj=bytes_io, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        top = tarfile.TarInfo("top")
        top.type = tarfile.DIRTYPE
        archive.addfile(top)
        archive.addfile(tarfile.TarInfo(name))
    assert plain_members(bytes_io.getvalue()) == {name: b""}


def _typed(kind: bytes) -> Callable[[tarfile.TarInfo], None]:
    def change(member: tarfile.TarInfo) -> None:
        member.type, member.linkname = kind, "/etc/passwd"
        member.size = 0 if kind != tarfile.REGTYPE else member.size

    return change


def _called(name: str) -> Callable[[tarfile.TarInfo], None]:
    def change(member: tarfile.TarInfo) -> None:
        member.name = name

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(_typed(kind) for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE)),
        *(_called(name) for name in ("/etc/passwd", "../up", "a/../../b", "c" * 140)),
    ],
)
def test_anything_else_is_left_to_the_standard_library(change: Callable[[tarfile.TarInfo], None]) -> None:
    assert plain_members(packed(change, tarfile.GNU_FORMAT)) is None


WHOLE = packed()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"text\n", gzip.compress(b"text\n"), WHOLE[:700], WHOLE[:512], gzip.compress(WHOLE)[:-4],
        gzip.compress(WHOLE)[:60], gzip.compress(WHOLE) + b"more", WHOLE[:20] + b"?" + WHOLE[21:],
        WHOLE[:124] + b"\x80" + WHOLE[125:], WHOLE[:124] + b"9" * 11 + WHOLE[135:], b"\x1f\x8b" + bytes(600),
    ],
    ids=range(12),  # not by their bytes, which hold the time of their packing
)  # fmt: skip
def test_damage_is_left_to_the_standard_library(data: bytes) -> None:
    assert plain_members(data) is None


def test_what_is_too_much_is_left_to_the_bounded_reader() -> None:
    for data in (WHOLE, gzip.compress(WHOLE)):
        assert plain_members(data, len(WHOLE)) == FILES
        assert plain_members(data, len(WHOLE) - 1) is None
        assert plain_members(data, most_members=len(FILES) - 1) is None
