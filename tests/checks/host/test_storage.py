"""HST006: storage does not answer, or processes wait in the kernel."""

from dataclasses import replace

import pytest

from tests.checks import nodes
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.host.storage import StorageStalls
from topodiag.evidence.host.kernel_log import LEAST_WHOLE, KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.finding import Status
from topodiag.model.node import Node
from topodiag.model.provenance import Topic

SILENT = "nfs: server 10.2.0.9 not responding, still trying"


def node(*lines: str) -> Node:
    text = "".join(f"[{100 + at}.000000] {line}\n" for at, line in enumerate(lines))
    events = tuple(KernelLog().parse(Blob("dmesg.txt", text.encode())).records)
    return replace(nodes.hgx_h100(), events=events, topics=frozenset({Topic.KERNEL_LOG}))


@examples("lines", "part", "wanted")
def test_what_the_kernel_says_of_storage(lines: list[str], part: bool | None, wanted: Wanted) -> None:
    """One line a second from 100 s on; of a `part` of a log the rest may say that the server came back."""
    made = node(*lines)
    outcome = StorageStalls().judge(replace(made, topics=frozenset()) if part else made)
    assert shown(outcome, wanted) == wanted


@pytest.mark.parametrize(("end", "told"), [("\n", {Topic.KERNEL_LOG}), ("", set())], ids=["whole", "cut"])
def test_a_log_whose_last_line_has_no_end_is_cut_and_may_lack_the_answer(end: str, told: set[Topic]) -> None:
    text = "\n".join(f"[{100 + at}.000000] {SILENT}" for at in range(LEAST_WHOLE)) + end
    source = KernelLog()
    assert source.told(source.parse(Blob("dmesg.txt", text.encode()))) == told


def test_without_a_kernel_log_it_is_unknown() -> None:
    assert StorageStalls().judge(nodes.hgx_h100()).status is Status.UNKNOWN
