"""Tree files: many small files in one text."""

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.readings import Notes
from topodiag.evidence.tree import TreeFile, read_tree


def read(text: str | bytes) -> tuple[dict[str, TreeFile], Parsed[int]]:
    parsed: Parsed[int] = Parsed()
    data = text.encode() if isinstance(text, str) else text
    return read_tree(Blob("t.tree", data), parsed), parsed


def test_lines_links_bytes_errors_and_folders() -> None:
    tree, parsed = read(
        "# comment\n"
        "= sys/a/class\t0x030200\n"
        "> sys/a/driver\t../../nvidia\n"
        "x sys/a/config\tde10\n"
        "! sys/a/speed\tEINVAL Invalid argument\n"
        "d sys/b\t\n"
    )
    assert tree["sys/a/class"].text == "0x030200"
    assert tree["sys/a/driver"].link == "../../nvidia"
    assert tree["sys/a/config"].data == b"\xde\x10"
    assert tree["sys/a/speed"].error == "EINVAL Invalid argument"
    assert tree["sys/b"].is_dir
    assert not parsed.unread


def test_a_file_of_several_lines_keeps_their_places() -> None:
    tree, _ = read("= proc/x\tone\n= proc/x\ttwo\n")
    assert tree["proc/x"].lines == [(1, "one"), (2, "two")]


def test_escapes_in_paths_and_text() -> None:
    tree, _ = read("= a\\tb\tone\\ntwo\\\\\n")
    assert tree["a\tb"].text == "one\ntwo\\"


def test_files_below_a_folder_are_told_by_the_names_directly_in_it() -> None:
    notes = Notes(Blob("t.tree", b"= s/a/x\t1\n= s/b/y/z\t2\n= sx\t3\n"), NodeDraft())
    assert {name: list(files) for name, files in notes.below("s").items()} == {"a": ["x"], "b": ["y/z"]}


def test_a_foreign_line_is_left_and_the_rest_is_kept() -> None:
    tree, parsed = read("rubbish\nx a/config\tzz\n= a/b\t1\n")
    assert tree["a/b"].text == "1"
    assert [line.line for line in parsed.unread] == [1, 2]
