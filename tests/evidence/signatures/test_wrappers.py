"""Wrappers of launchers, schedulers and loggers are taken off, and what they say is kept."""

from math import isnan

from tests.tables import examples
from topodiag.evidence.signatures import wrappers

S = "Bootstrap : no socket interface found"


@examples("line", "text", "host", "rank", "pid")
def test_what_is_left_is_the_sentence(line: str, text: str, host: str, rank: int, pid: int) -> None:
    bare = wrappers.unwrap(line)
    assert (bare.text, bare.host, bare.rank, bare.pid) == (text, host, rank, pid)


@examples("line", "seconds")
def test_the_time_before_a_line_is_read(line: str, seconds: float | None) -> None:
    read = wrappers.unwrap(line).time_s
    assert isnan(read) if seconds is None else read == seconds


def test_an_event_inside_an_object_is_a_sentence_with_its_host_and_device() -> None:
    inner = f'{{"message": "{S}", "entities": [{{"type": "PCI", "value": "0000:c3:00"}}], "nodeName": "n7"}}'
    [member] = wrappers.members(f'{{"msg": "x", "event": {inner}}}')
    assert (member.text, member.host, member.bus_id) == (S, "n7", "0000:c3:00")
    assert wrappers.members(S) == []


@examples("name", "lines")
def test_a_label_that_all_lines_share_is_known_and_taken_off(name: str, lines: list[str]) -> None:
    assert wrappers.shared_label(lines) == name
    assert [line.strip() for line in map(wrappers.without_label(name), lines)] in (["a", "b"], ["a", ""])


@examples("lines")
def test_what_not_all_lines_share_is_no_label(lines: list[str]) -> None:
    assert wrappers.shared_label(lines) == ""


def test_a_label_of_another_container_stays() -> None:
    bare = wrappers.without_label("compose")
    assert [bare(line) for line in ("trainer-1 | a", "web-1 | b", "c", "trainer-1 | d")] == ["a", "web-1 | b", "c", "d"]


@examples("line", "bare")
def test_labels_of_launchers_go_and_clocks_and_hosts_stay(line: str, bare: str) -> None:
    assert wrappers.without_launcher(line) == bare


@examples("text", "label")
def test_what_belongs_to_the_next_line_is_parted_from_one_whose_break_was_lost(text: str, label: str) -> None:
    assert wrappers.parted_at_end(text) == (text.removesuffix(label), label)


@examples("before", "is_one")
def test_nothing_but_labels_stands_before_a_sentence(before: str, is_one: bool) -> None:
    assert wrappers.is_label(before) is is_one


def test_torchs_head_has_the_place_in_the_source_and_the_rank_of_the_job() -> None:
    head = "[rank3]:[E302 11:02:04.1 ProcessGroupNCCL.cpp:1784] "
    shown = wrappers.parted_at_place(f"{head}[PG ID 0 Rank 5] {S}")
    assert shown == ("[rank3]:", "ProcessGroupNCCL.cpp:1784", f"[PG ID 0 Rank 5] {S}")
    assert wrappers.parted_at_place(S) == ("", "", S)
    assert (wrappers.rank_of_torch("[PG ID 0 Rank 05] x"), wrappers.rank_of_torch("[PG ID 7 Rank 5] x")) == ("5", "")


@examples("lines", "bare")
def test_the_last_lines_of_one_process_lose_what_stands_around_all_of_them(lines: list[str], bare: list[str]) -> None:
    assert wrappers.of_one_process(lines) == bare
