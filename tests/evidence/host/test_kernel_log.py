"""Kernel messages of interest, in every time format."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, recognises
from tests.tables import examples
from topodiag.checks.shared.node.kernel import when
from topodiag.evidence.assemble import distinct_events
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.kernel_log import MAX_EVENTS, KernelLog
from topodiag.evidence.host.systemctl import Systemctl, units
from topodiag.evidence.interface import Blob
from topodiag.evidence.page import Page

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."


@examples("message", "kind", "bus_id", "code")
def test_a_message_of_interest_has_its_kind_device_and_code(
    message: str, kind: str, bus_id: str | None, code: int | None
) -> None:
    draft, _ = read("kernel-log", f"[  100.000001] {message}\n")
    (event,) = draft.events
    assert (event.kind, event.bus_id, event.code, event.text) == (kind, bus_id, code, message)


def test_messages_of_no_entry_are_no_events_and_nothing_unread() -> None:
    draft, parsed = read("kernel-log", "[   12.000001] NVRM: loading NVIDIA UNIX Open Kernel Module  570.86.15\n")
    assert (draft.events, parsed.unread) == ([], [])


@examples("prefix", "time_s")
def test_every_time_format_is_understood_and_taken_off_the_message(prefix: str, time_s: float | None) -> None:
    draft, _ = read("kernel-log", f"{prefix}{XID}\n")
    assert (draft.events[0].time_s, draft.events[0].text) == (time_s, XID)


@pytest.mark.parametrize("prefix", ["[Thu Foo 99 00:16:40 1970] ", "9999-99-99T99:99:99+00:00 "])
def test_an_impossible_time_is_unknown_and_the_event_stays(prefix: str) -> None:
    draft, _ = read("kernel-log", f"{prefix}{XID}\n")
    assert (draft.events[0].time_s, draft.events[0].code) == (None, 79)


def test_an_event_names_its_line() -> None:
    draft, _ = read("kernel-log", f"\n[1.000000] usb 1-1: new device\n[2.000000] {XID}\n", "dmesg.txt")
    assert (draft.events[0].origin.source, draft.events[0].origin.line) == ("dmesg.txt", 3)


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("/var/log/nvidia-installer.log", [9]),
        ("/var/lib/dkms/nvidia/570.86.15/6.8.0-60-generic/x86_64/log/make.log", [9]),
        ("/var/log/messages", [4, 9]),
    ],
)
def test_what_the_log_of_a_build_quotes_in_a_bug_report_is_of_that_day(path: str, lines: list[int]) -> None:
    rule = "_" * 44
    report = f"{rule}\n\n*** {path}\n[ 61.250000] {XID}\n\n{rule}\n\n/usr/bin/dmesg\n[ 72.500000] {XID}\n"
    assert [event.origin.line for event in read("kernel-log", report)[0].events] == lines


def test_of_a_flood_the_newest_are_kept_and_the_rest_is_counted() -> None:
    lines = (f"[{second}.000000] {XID}" for second in range(MAX_EVENTS + 5))
    draft, parsed = read("kernel-log", "\n".join(lines))
    assert len(draft.events) == MAX_EVENTS
    assert draft.events[0].time_s == 5.0
    assert parsed.unread[0].why.startswith("5 older events")


@examples("text", "known")
def test_it_recognises_kernel_logs_also_beside_nccl_records_and_no_job_logs(text: str, known: bool) -> None:
    assert recognises("kernel-log", text) is known


def test_xids_from_a_public_thread_are_read() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    texts = [each["text"] for each in json.loads((CORPUS / "cases" / "220.json").read_text())["inputs"]]
    text = next(text for text in texts if "Xid (" in text)
    draft, _ = read("kernel-log", text)
    assert len(draft.events) == text.count("NVRM: Xid (")
    assert {event.code for event in draft.events} >= {45}


@given(st.text(max_size=200))
def test_any_text_is_survived_and_costs_no_other_line(noise: str) -> None:
    line = noise.replace("\n", " ").replace("\r", " ")
    draft, _ = read("kernel-log", f"{line}\n[5.000000] {XID}\n".encode("utf-8", "replace"))
    assert [event.code for event in draft.events][-1] == 79


@examples("line", "own")
def test_a_text_is_a_whole_log_by_the_lines_of_the_kernel_alone(line: str, own: bool) -> None:
    _, parsed = read("kernel-log", "\n".join(line.format(number) for number in range(300)) + "\n")
    assert parsed.partial == (not own)


SYSLOG, JOURNAL = "Mar  4 05:06:{} n7 kernel: [ 81.{}] ", "3月 04 05:06:{} n7 kernel: "


@pytest.mark.parametrize(
    ("prefixes", "seconds"),
    [
        ([SYSLOG.format("01", "100001"), JOURNAL.format("01")], ["01"]),
        ([SYSLOG.format("01", "100001"), SYSLOG.format("01", "150002"), JOURNAL.format("01")], ["01", "01"]),
        ([JOURNAL.format("01"), JOURNAL.format("01")], ["01", "01"]),
        ([SYSLOG.format("01", "100001"), JOURNAL.format("02")], ["01", "02"]),
        ([JOURNAL.format("01"), "[   81.100001] "], ["01", ""]),
    ],
)
def test_a_line_of_syslog_and_of_the_journal_is_one_event_where_both_have_the_same_second(
    prefixes: list[str], seconds: list[str]
) -> None:
    draft, _ = read("kernel-log", "".join(f"{prefix}{XID}\n" for prefix in prefixes))
    assert [event.date[-2:] for event in distinct_events(draft.events)] == seconds


DATED, LAST_BOOT, SINCE_BOOT = "Jun 25 21:09:01 n7 kernel: ", "Jun 26 11:17:25 n7 kernel: ", "[ 1897.016345] "
SLEWED, SLEWS = "Jun 26 10:46:20 n7 kernel:", ["Jun 26 10:46:20", "Jun 26 11:17:25"]
"""Eleven seconds off the clock of the boot."""
OLD_YEAR, NEW_YEAR = "Dec 31 23:59:58 n7 kernel: ", "Jan  1 00:00:03 n7 kernel: "
OTHERS = ("[   40.000001] NVRM: Xid (PCI:0000:43:00): 31, Ch 1", "[   50.000001] NVRM: Xid (PCI:0000:43:00): 62, 1")


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        ([LAST_BOOT + XID, DATED + XID, SINCE_BOOT + XID], ["Jun 25 21:09:01", "Jun 26 11:17:25"]),
        ([SINCE_BOOT + XID, LAST_BOOT + XID], ["Jun 26 11:17:25"]),
        ([SINCE_BOOT + XID, *OTHERS[:1], LAST_BOOT + XID, OTHERS[0].replace(OTHERS[0][:15], SLEWED)], SLEWS),
        ([SINCE_BOOT + XID, *OTHERS, LAST_BOOT + XID], ["Jun 26 11:17:25", "", "", ""]),
        ([OLD_YEAR + XID, NEW_YEAR + XID], ["Dec 31 23:59:58", "Jan 1 00:00:03"]),
    ],
)  # fmt: skip
def test_messages_stand_in_the_order_of_their_dates_and_those_since_boot_count_once(
    lines: list[str], kept: list[str]
) -> None:
    draft, _ = read("kernel-log", "".join(f"{line}\n" for line in lines))
    assert [event.date for event in distinct_events(draft.events)] == kept


def test_the_date_of_syslog_is_said_before_the_time_since_boot() -> None:
    draft, _ = read("kernel-log", f"{SYSLOG.format('01', '100001')}{XID}\n[   81.100001] {XID}\n")
    assert [when(event) for event in draft.events] == ["Mar 4 05:06:01", "81.1 s after boot"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("2026-03-04T05:06:01.250000+02:00", "2026-03-04T05:06:01+02:00"),
        ("2026-03-04T05:06:01,250000-0730", "2026-03-04T05:06:01-0730"),
        ("2026-03-04T05:06:01.250000+00:00", "2026-03-04 05:06:01"),
    ],
)
def test_a_time_of_another_zone_is_said_as_it_stands_there(written: str, said: str) -> None:
    draft, _ = read("kernel-log", f"{written} tin-4 kernel: {XID}\n")
    assert [when(event) for event in draft.events] == [said]


# --- what systemd's journal says of NVIDIA's units ------------------------------------------------------------

START = "Nov 15 14:15:47 n1 systemd[1]: "


def told(*messages: str) -> dict[str, str]:
    text = "\n".join(START + message for message in messages)
    return {unit.name: unit.word for unit in units(Page(Blob("journal.txt", text.encode()), NodeDraft()))}


@examples("message")
def test_a_unit_that_failed_is_known_by_any_of_its_lines(message: str) -> None:
    assert told(message) == {"nvidia-fabricmanager": "failed"}


def test_the_last_line_counts() -> None:
    failed, started = "Failed to start NVIDIA fabric manager service.", "Started NVIDIA fabric manager service."
    assert told(failed, started) == {"nvidia-fabricmanager": "active"}
    assert told(started, failed) == {"nvidia-fabricmanager": "failed"}


@examples("message")
def test_what_says_nothing_of_a_unit_of_nvidia_is_passed_over(message: str) -> None:
    assert told(message) == {}


def test_a_journal_is_read_with_and_without_messages_of_the_kernel() -> None:
    service = START + "Failed to start NVIDIA fabric manager service.\n"
    assert Systemctl().recognises(service)
    draft = NodeDraft()
    assert Systemctl().read(Blob("journal.txt", service.encode()), draft).records == [1]
    offers = draft.single("services").offers
    assert {name: offer.value for name, (offer,) in offers.items()} == {"nvidia-fabricmanager": "failed"}
    kernel = "Nov 15 14:15:40 n1 kernel: NVRM: GPU at PCI:0000:4c:00: GPU-1\n"
    assert KernelLog().recognises(kernel + service)
