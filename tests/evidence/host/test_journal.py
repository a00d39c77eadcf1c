"""What systemd's journal says of NVIDIA's units."""

from tests.tables import examples
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.kernel_log import KernelLog
from topodiag.evidence.host.systemctl import Systemctl, units
from topodiag.evidence.interface import Blob
from topodiag.evidence.page import Page

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
