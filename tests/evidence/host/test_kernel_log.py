"""Kernel messages of interest, in every time format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read, recognises
from topodiag.evidence.host.kernel_log import MAX_EVENTS

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("message", "kind", "bus_id", "code"),
    [
        (XID, "xid", "0000:1b:00.0", 79),
        ("NVRM: Xid (0000:03:00): 31, Ch 00000010", "xid", "0000:03:00.0", 31),
        ("nvidia-nvswitch2: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 61", "sxid", "0000:85:00.0", 12028),
        ("pcieport 0000:15:01.0: AER: Corrected error received: 0000:16:00.0", "aer", "0000:16:00.0", None),
        ("pcieport 0000:15:01.0: AER: Multiple Uncorrected (Fatal) error received: 0000:15:01.0", "aer",
         "0000:15:01.0", None),
        ("nvme 0000:9a:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer", "aer", "0000:9a:00.0", None),
        ("mlx5_core 0000:9c:00.0: 252.056 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x8 link at "
         "0000:97:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)", "pcie-bandwidth", "0000:9c:00.0", None),
        ("mlx5_core 0000:9c:00.0: Port module event[error]: module 0, Cable error, Bus stuck", "mlx5",
         "0000:9c:00.0", None),
        ("mlx5_core 0000:9c:00.0 ens41f0np0: Link down", "link", "0000:9c:00.0", None),
        ("ixgbe 0000:0b:00.0 eno3: NIC Link is Up 10 Gbps, Flow Control: None", "link", "0000:0b:00.0", None),
        ("NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned "
         "from status @ kernel_channel.c:2827", "gpu-reset", None, None),
        ("NVRM: GPU 0000:1b:00.0: Assertion failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0F)", "gpu-lost",
         "0000:1b:00.0", None),
        ("NVRM: GPU 0000:1b:00.0: RmInitAdapter failed! (0x24:0x65:1498)", "gpu-init", "0000:1b:00.0", None),
        ("NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.", "gpu-lost", "0000:1b:00.0", None),
        ("NVRM: Xid (PCI:xxxx:xx:xx): 79, GPU has fallen off the bus.", "xid", None, 79),
        ("NVRM: Xid (PCI:0000:1b:00 GPU-I:05): 94, pid=71, name=python3, Contained", "xid", "0000:1b:00.0", 94),
        ("NVRM: GPU at 0000:01:00.0 has fallen off the bus.", "gpu-lost", "0000:01:00.0", None),
        ("nvidia 0000:42:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0039 address=0xb5a00000 flags=0x0030]",
         "iommu-fault", "0000:42:00.0", None),
        ("AMD-Vi: Event logged [IO_PAGE_FAULT device=42:00.0 domain=0x0039 address=0x0 flags=0x30]", "iommu-fault",
         "0000:42:00.0", None),
        ("DMAR: [DMA Write] Request device [3b:00.0] fault addr fffff000 [fault reason 05] PTE Write access is not set",
         "iommu-fault", "0000:3b:00.0", None),
        ("DMAR: [DMA Read NO_PASID] Request device [0000:3b:00.0] fault addr 0x0 [fault reason 0x06]", "iommu-fault",
         "0000:3b:00.0", None),
        ("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context", "nvrm", None, None),
    ],
)  # fmt: skip
def test_a_message_of_interest_has_its_kind_device_and_code(
    message: str, kind: str, bus_id: str | None, code: int | None
) -> None:
    draft, _ = read("kernel-log", f"[  100.000001] {message}\n")
    (event,) = draft.events
    assert (event.kind, event.bus_id, event.code, event.text) == (kind, bus_id, code, message)


def test_messages_of_no_entry_are_no_events_and_nothing_unread() -> None:
    draft, parsed = read("kernel-log", "[   12.000001] NVRM: loading NVIDIA UNIX Open Kernel Module  570.86.15\n")
    assert (draft.events, parsed.unread) == ([], [])


@pytest.mark.parametrize(
    ("prefix", "time_s"),
    [
        ("[  999.123456] ", 999.123456),
        ("<4>[  999.123456] ", 999.123456),
        ("kern  :err   : [  999.123456] ", 999.123456),
        ("[  999.123456] gpu-001 kernel: ", 999.123456),
        ("[Thu Jan  1 00:16:40 1970] ", 1000.0),
        ("1970-01-01T00:16:40,123456+00:00 ", 1000.0),
        ("kern  :warn  : 1970-01-01T00:16:40,123456+00:00 ", 1000.0),
        ("3,5012,999123456,-;", 999.123456),
        ("1970-01-01T01:16:40+01:00 gpu-001 kernel: ", 1000.0),
        ("Jan  1 00:16:40 gpu-001 kernel: ", None),
        ("kernel: ", None),
        ("", None),
    ],
)
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


def test_of_a_flood_the_newest_are_kept_and_the_rest_is_counted() -> None:
    lines = (f"[{second}.000000] {XID}" for second in range(MAX_EVENTS + 5))
    draft, parsed = read("kernel-log", "\n".join(lines))
    assert len(draft.events) == MAX_EVENTS
    assert draft.events[0].time_s == 5.0
    assert parsed.unread[0].why.startswith("5 older events")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (f"[    0.000000] Linux version 6.8.0\n[    1.000000] {XID}\n", True),
        (f"kernel: {XID}\n", True),
        ("[Sat Nov 21 02:14:09 2026] NVRM: Xid (PCI:0000:1b:00): 79, x\n", True),
        ("[2026-11-21 02:14:09] gpu-1:1:2 [0] NCCL INFO NET/IB : No device found.\n", False),
        (f"gpu-1:1:2 [0] NCCL INFO Bootstrap\n{XID}\n", True),
        ("step 1 [1.5] loss\n", False),
    ],
)
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


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(noise: bytes) -> None:
    read("kernel-log", noise)
