"""HST006: storage does not answer, or processes wait in the kernel."""

from dataclasses import replace

import pytest

from tests.checks import nodes
from tests.tables import examples
from topodiag.checks.host.storage import StorageStalls
from topodiag.evidence.host.kernel_log import LEAST_WHOLE, KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.finding import Confidence, Finding, Severity, Status
from topodiag.model.node import Node
from topodiag.model.topics import Topic

BLOCKED = "INFO: task python:48211 blocked for more than 120 seconds."
SILENT = "nfs: server 10.2.0.9 not responding, still trying"
BACK = "nfs: server 10.2.0.9 OK"
LOST = "Lustre: s-OST0007-osc-ff11: Connection to s-OST0007 (at 10.2.1.9@o2ib) was lost; in progress operations using"
RESTORED = "Lustre: s-OST0007-osc-ff11: Connection restored to s-OST0007 (at 10.2.1.9@o2ib)"


def node(*lines: str) -> Node:
    text = "".join(f"[{100 + at}.000000] {line}\n" for at, line in enumerate(lines))
    events = tuple(KernelLog().parse(Blob("dmesg.txt", text.encode())).records)
    return replace(nodes.hgx_h100(), events=events, told=frozenset({Topic.KERNEL_LOG}))


def found(*lines: str) -> list[Finding]:
    return list(StorageStalls().judge(node(*lines)).findings)


@examples("lines", "message")
def test_storage_that_does_not_answer_is_an_error(lines: tuple[str, ...], message: str) -> None:
    [finding] = found(*lines)
    assert finding.message.startswith(message)
    assert finding.severity is Severity.ERROR


def test_what_is_blocked_beside_it_waits_for_it() -> None:
    [finding] = found(BLOCKED, SILENT)
    assert finding.message == "NFS server 10.2.0.9 does not answer"


def test_blocked_tasks_alone_are_a_warning() -> None:
    [finding] = found(BLOCKED, BLOCKED.replace("120", "241"))
    assert finding.message == "python: blocked in the kernel for 241 seconds or longer"
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize("lines", [(SILENT, BACK), (LOST, RESTORED)])
def test_a_server_that_came_back_is_a_note(lines: tuple[str, ...]) -> None:
    [finding] = found(*lines)
    assert (finding.severity, finding.message.endswith("did not answer for a while")) == (Severity.INFO, True)
    assert finding.observed.endswith("; it came back after 1 s")
    assert [line.text for line in finding.evidence] == [f"[{100 + at}.000000] {line}" for at, line in enumerate(lines)]


def test_of_several_outages_the_longest_is_shown() -> None:
    [finding] = found(SILENT, BACK, SILENT, SILENT, BACK, BACK)
    assert finding.observed.startswith("5 lines: nfs")
    assert [line.text[:11] for line in finding.evidence] == ["[102.000000", "[103.000000", "[104.000000"]


def test_one_that_fell_silent_again_is_no_note() -> None:
    [finding] = found(SILENT, BACK, SILENT)
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)


def test_in_a_few_lines_of_a_log_it_is_not_sure() -> None:
    """The rest of the log may say that the server came back."""
    [finding] = StorageStalls().judge(replace(node(SILENT), told=frozenset())).findings
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.MEDIUM)


@pytest.mark.parametrize(("end", "told"), [("\n", {Topic.KERNEL_LOG}), ("", set())], ids=["whole", "cut"])
def test_a_log_whose_last_line_has_no_end_is_cut_and_may_lack_the_answer(end: str, told: set[Topic]) -> None:
    text = "\n".join(f"[{100 + at}.000000] {SILENT}" for at in range(LEAST_WHOLE)) + end
    source = KernelLog()
    assert source.told(source.parse(Blob("dmesg.txt", text.encode()))) == told


@examples("line")
def test_what_a_healthy_kernel_says_of_storage_is_silent(line: str) -> None:
    assert StorageStalls().judge(node(line)).status is Status.CLEAN


def test_without_a_kernel_log_it_is_unknown() -> None:
    assert StorageStalls().judge(nodes.hgx_h100()).status is Status.UNKNOWN
