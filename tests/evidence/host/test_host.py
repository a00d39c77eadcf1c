"""What tools and files say of a host, and kernel messages of interest in every time format."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, node_of, read, recognises, text_of, value, why
from tests.tables import examples, texts
from topodiag.app.scan import scan
from topodiag.checks.shared.node.kernel import when
from topodiag.checks.shared.tables import reported_by_tables
from topodiag.evidence.assemble import assemble, distinct_events
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.kernel_log import MAX_EVENTS, KernelLog
from topodiag.evidence.host.kubernetes import KubectlNode
from topodiag.evidence.host.settings import Processes, as_nccl_reads
from topodiag.evidence.host.slurm_nodes import kind_of
from topodiag.evidence.host.systemctl import Systemctl, units
from topodiag.evidence.interface import Blob
from topodiag.evidence.page import Page
from topodiag.evidence.registry import recognise
from topodiag.model.events import Trust
from topodiag.model.node import Process
from topodiag.words.unfilled import is_unfilled

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"


@pytest.mark.parametrize(
    ("line", "read_as"),
    [
        ("NCCL_DEBUG=INFO", ("NCCL_DEBUG", "INFO")),
        ("NCCL_DEBUG=INFO ", ("NCCL_DEBUG", "INFO ")),
        ("NCCL_IB_HCA = mlx5", ("NCCL_IB_HCA ", " mlx5")),
        ("NCCL_IB_HCA==mlx5_0:1", ("NCCL_IB_HCA", "=mlx5_0:1")),
        ('NCCL_ALGO="Ring"', ("NCCL_ALGO", '"Ring"')),
        ("export NCCL_ALGO=Ring", ("export NCCL_ALGO", "Ring")),
        ("NCCL_ALGO=Ring # fast", ("NCCL_ALGO", "Ring # fast")),
        (" # NCCL_ALGO=Ring", (" # NCCL_ALGO", "Ring")),
        ("#NCCL_ALGO=Ring", None),
        ("NCCL_ALGO Ring", None),
        ("", None),
        ("NCCL_A=" + "x" * 2000, ("NCCL_A", "x" * 1023)),
    ],
)
def test_a_conf_line_is_read_to_the_letter_as_nccl_reads_it(line: str, read_as: tuple[str, str] | None) -> None:
    assert as_nccl_reads(line) == read_as


def test_no_other_kind_of_text_in_the_wild_is_taken_for_a_host_format() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    kinds = ("sys-pci", "sys-cpu", "os-state", "settings", "lspci", "systemctl", "kernel-log")
    wrong = []
    for folder in ("topo_m", "logs", "nccl_tests", "pairwise", "topo"):
        for path in sorted((CORPUS / folder).iterdir()):
            if path.suffix in (".txt", ".xml", ".csv"):
                text = path.read_text(errors="replace")[:65536]
                wrong += [(path.name, kind) for kind in kinds if recognises(kind, text)]
    assert wrong == []


@given(st.lists(st.text(max_size=40), max_size=12))
def test_every_line_of_any_conf_file_is_kept(lines: list[str]) -> None:
    clean = ["".join(char for char in line if char.isprintable()) for line in lines]
    clean = [line for line in clean if not is_unfilled(line) or " " not in line]  # messages of a program
    draft, _ = read("settings", "".join(f"{line}\n" for line in clean), "nccl.conf")
    assert [line.text for line in draft.conf_lines] == clean


# --- `ncclparam -l` becomes settings: what was set, and never what is a default


TEXTS = texts(__file__)
DUMP = TEXTS["dump"]


def test_what_is_set_is_a_setting_of_the_node_and_a_default_is_none(tmp_path: Path) -> None:
    place = tmp_path / "params.txt"
    place.write_text(DUMP)
    result = scan([str(place)])
    assert [item.kind for item in result.inputs] == ["nccl-params"]
    assert [(setting.name, setting.value) for setting in result.nodes[0].settings] == [
        ("NCCL_P2P_DISABLE", "1"),
        ("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"),
    ]


def test_it_is_known_by_its_second_line_whatever_stands_around() -> None:
    assert recognise(DUMP)[:1] == ("nccl-params",)
    assert "nccl-params" not in recognise("Current value=1 set_by=me\n")


# --- reasons for which a node is out of service: which part they name, and which tell of no fault -------------


@examples("reason", "kind")
def test_a_reason_names_a_part(reason: str, kind: str) -> None:
    assert kind_of(reason) == kind


# --- numactl -H: processors of NUMA nodes, and a node whose memory is gone


TEXT = TEXTS["text"]


def test_a_node_has_its_processors() -> None:
    node = node_of(TEXT.format(cpus="4 5 6 7", size=516000))
    assert [(numa_node.id, numa_node.cpus.value) for numa_node in node.numa] == [(0, "0-3"), (1, "4-7")]
    assert not reported_by_tables(node)


@pytest.mark.parametrize(("cpus", "told"), [("4 5 6 7", 1), ("", 0)], ids=["with processors", "memory alone is none"])
def test_processors_without_memory_are_told(cpus: str, told: int) -> None:
    assert len(reported_by_tables(node_of(TEXT.format(cpus=cpus, size=0)))) == told


# --- kernel and driver state as a tree


DMI = "sys/class/dmi/id"
HOST = text_of("os-state", "HOST")


@examples("vendor", "product", "word")
def test_the_hypervisor_is_told_by_the_firmware_or_unknown(vendor: str, product: str, word: str | None) -> None:
    draft, _ = read("os-state", f"= {DMI}/sys_vendor\t{vendor}\n= {DMI}/product_name\t{product}\n")
    os = draft.single("os")
    assert value(os, "virtualization") == word
    assert (why(os, "virtualization") != "") == (word is None)


def test_bare_metal_by_its_firmware_yields_to_the_processors_hypervisor_flag() -> None:
    draft, _ = read("os-state", HOST)
    flagged, _ = read("sys-cpu", "= proc/cpuinfo\tvendor_id\t: x\n= proc/cpuinfo\tflags\t: hypervisor\n")
    bare = draft.single("os").offers["virtualization"][0]
    guest = flagged.single("os").offers["virtualization"][0]
    named = read("os-state", f"= {DMI}/sys_vendor\tQEMU\n")[0].single("os").offers["virtualization"][0]
    assert bare.trust < guest.trust < named.trust


@examples("vendor", "product", "name")
def test_the_system_is_named_by_vendor_and_product(vendor: str, product: str, name: str | None) -> None:
    draft, _ = read("os-state", f"= {DMI}/sys_vendor\t{vendor}\n= {DMI}/product_name\t{product}\n")
    assert value(draft.single("node"), "system") == name


@examples("lines", "word")
def test_the_container_is_told_by_its_marks_or_unknown(lines: str, word: str | None) -> None:
    draft, _ = read("os-state", lines)
    assert value(draft.single("os"), "container") == word


# --- processes with a GPU open, as the collector wrote them


ONE: dict[str, Any] = json.loads(text_of("processes", "ONE"))


def fill(document: Any) -> NodeDraft:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return draft_by(Processes(), Blob("json/processes.json", data))


def one(**more: Any) -> Process:
    return fill({"processes": [{**ONE, **more}]}).processes[0]


@pytest.mark.parametrize("bad", [None, 3, "x", [], ["a"], {"a": 1}, True, -1, "0-99999999999999"])
def test_a_wrong_type_costs_only_that_value(bad: Any) -> None:
    for key in ("name", "gpus", "cpus_allowed", "nccl_env", "error"):
        assert one(**{key: bad}).pid == 4711
    assert one(cpus_allowed=bad).cpus_allowed.value is None
    assert one(cpus_allowed=bad).gpus == (0, 3)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers())


@given(st.lists(st.dictionaries(st.sampled_from([*ONE]), VALUES), max_size=4))
def test_any_values_are_survived(processes: list[dict[str, Any]]) -> None:
    fill({"processes": [*processes, {**ONE, "pid": 2**20}]})
    assert fill({"processes": [*processes, {**ONE, "pid": 2**31}]}).processes[-1].gpus == (0, 3)


# --- kubectl describe node: GPUs that are had and given out, among siblings


NODE = TEXTS["node"]


def pod(text: str) -> list[tuple[str, str]]:
    draft = NodeDraft()
    KubectlNode().read(Blob("k.txt", text.encode()), draft)
    events = reported_by_tables(assemble(draft, "n"))
    assert {event.trust for event in events} <= {Trust.AGENT}
    return [(event.kind, event.text) for event in events]


@examples("counts", "told")
def test_a_node_that_gives_out_fewer_gpus_is_told(counts: list[tuple[int, int]], told: list[str]) -> None:
    text = "".join(NODE.format(name=f"n{n}", has=has, gives=gives) for n, (has, gives) in enumerate(counts))
    assert KubectlNode().recognises(text)
    assert pod(text) == [("gpu.count_low", text) for text in told]


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
