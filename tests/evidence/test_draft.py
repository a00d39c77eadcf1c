"""The node under construction, files of many files, tables of any script, metrics; and what each source speaks of."""

import pytest

from tests.tables import examples
from topodiag.evidence import registry
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.metrics_text import labels_of, samples_of, whole
from topodiag.evidence.readings import Notes
from topodiag.evidence.registry import recognise
from topodiag.evidence.table import columns_of, tables_of
from topodiag.evidence.tree import TreeFile, read_tree
from topodiag.model.provenance import Origin, Topic

HERE = Origin("x.txt", 1)


def test_keys_given_together_name_one_device() -> None:
    draft = NodeDraft()
    draft.gpu(index=0).offer("numa", 0, HERE)
    draft.gpu(bus_id="0000:1b:00.0").offer("sm", 90, HERE)
    joined = draft.gpu(index=0, bus_id="00000000:1B:00.0")
    assert set(joined.offers) == {"numa", "sm"}
    assert len(list(draft.entities("gpu"))) == 1


def test_a_handle_stays_valid_after_its_device_was_merged() -> None:
    draft = NodeDraft()
    by_name, by_bus = draft.nic(rdma="mlx5_0"), draft.nic(bus_id="0000:18:00.0")
    draft.nic(rdma="mlx5_0", bus_id="0000:18:00.0")
    by_bus.offer("numa", 1, HERE)
    by_name.child("port", 1).offer("state", "ACTIVE", HERE)
    assert by_name.offers.keys() == by_bus.offers.keys() == {"numa"}
    assert by_bus.children.keys() == {("port", 1)}


def test_parts_of_merged_devices_are_merged() -> None:
    draft = NodeDraft()
    draft.gpu(index=0).child("nvlink", 4).offer("state", "active", HERE)
    draft.gpu(uuid="GPU-x").child("nvlink", 4).offer("line_gbs", 26.562, HERE)
    link = draft.gpu(index=0, uuid="GPU-x").child("nvlink", 4)
    assert set(link.offers) == {"state", "line_gbs"}


def test_none_is_no_offer_and_a_reason_is_kept() -> None:
    draft = NodeDraft()
    draft.gpu(index=0).offer("numa", None, HERE)
    draft.gpu(index=0).offer("numa", None, HERE, "NotSupported")
    offers = draft.gpu(index=0).offers["numa"]
    assert [(offer.value, offer.why) for offer in offers] == [(None, "NotSupported")]


# --- tree files: many small files in one text


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


# --- tables of any script: how their rows are found, and what their columns are called


def cells(text: str) -> list[dict[str, str]]:
    return [dict(row.cells) for table in tables_of(Blob("out.txt", text.encode())) for row in table.rows]


@examples("text", "rows")
def test_a_row_has_the_columns_that_checks_ask_for(text: str, rows: list[dict[str, str]]) -> None:
    assert cells(text) == rows


@examples("text")
def test_what_no_check_asks_for_is_no_table(text: str) -> None:
    assert cells(text) == []
    assert not {"rows", "table"} & set(recognise(text))


def test_names_are_read_in_any_spelling() -> None:
    assert columns_of(["GPU", "smClock", "gpu_util"]) == {0: "gpu", 1: "clock", 2: "load"}
    assert columns_of(["gpu", "clocks.max.sm", "memory.util"]) == {}  # what it could do, and the load of its memory


# --- samples of Prometheus' text format, one line each, whatever stands around them


def samples(text: str) -> list[tuple[str, dict[str, str], float]]:
    return [(name, dict(labels), value) for name, labels, value, _, _ in samples_of(Blob("m", text.encode()), "x_")]


def test_a_sample_is_a_name_labels_and_a_value() -> None:
    assert samples('# HELP x_a words\n# TYPE x_a gauge\nx_a{b="1",c="d e"} 2.5e+10\n  x_b 3 1700000000000\n') == [
        ("x_a", {"b": "1", "c": "d e"}, 2.5e10),
        ("x_b", {}, 3.0),
    ]


def test_a_line_that_is_none_costs_itself() -> None:
    assert samples('x_a{b="1"\nx_b{b="1"} word\nx_c{} NaN\nx_d +Inf\ny_e 1\nx_f 4') == [("x_f", {}, 4.0)]


def test_labels_are_the_exporters_own() -> None:
    """A server renames those of which it has its own."""
    assert labels_of('Hostname="pod",exported_Hostname="n1"')["Hostname"] == "n1"
    assert labels_of(r'a="say \"b\" \\ c"') == {"a": r'say "b" \ c'}


def test_a_count_is_whole() -> None:
    assert [whole(value) for value in (3.0, 2.2031403016e10, 1.5, -1.0, 1e300)] == [3, 22031403016, None, None, None]


# --- every source of the registry is whole, and says what it speaks of


@pytest.mark.parametrize("kind", registry.SOURCES)
def test_a_source_says_what_it_speaks_of(kind: str) -> None:
    source = registry.source(kind)
    assert source.speaks_of
    assert all(isinstance(topic, Topic) for topic in source.speaks_of)


def test_some_source_speaks_of_each_topic() -> None:
    sources = [source for kind in registry.SOURCES if (source := registry.source(kind)) is not None]
    assert set().union(*(source.speaks_of for source in sources)) == set(Topic)
