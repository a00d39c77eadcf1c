"""HST001 to HST003 from what people paste of a host: limits, /dev/shm, device nodes, the kernel's command line."""

from __future__ import annotations

import pytest

from tests.evidence.filled import node_of
from topodiag.checks.host.devices import DevicesNotGiven
from topodiag.checks.host.limits import HostLimits
from topodiag.checks.host.settings import HostSettings
from topodiag.model.finding import Outcome, Severity, Status


def only(outcome: Outcome) -> tuple[Severity, str]:
    assert outcome.status is Status.FINDING, outcome.why
    (finding,) = outcome.findings
    return finding.severity, finding.message


MEMLOCK = "$ ulimit -l\nunlimited\n"
SHM = "tmpfs           756G   12M  756G   1% /dev/shm\n"


@pytest.mark.parametrize("text", [MEMLOCK, SHM, "max locked memory (kbytes, -l) unlimited\n"])
def test_one_limit_that_suffices_says_nothing_of_the_others(text: str) -> None:
    outcome = HostLimits().judge(node_of(text))
    assert (outcome.status, "is not in the evidence" in outcome.why) == (Status.UNKNOWN, True)


def test_a_device_that_ls_does_not_find_is_named() -> None:
    text = "ls: cannot access '/dev/nvidia-caps-imex-channels': No such file or directory\n"
    assert "IMEX" in only(DevicesNotGiven().judge(node_of(text)))[1]
    text = "# ls /dev/infiniband\nls: cannot access '/dev/infiniband': No such file or directory\n"
    assert "uverbs" in only(DevicesNotGiven().judge(node_of(text)))[1]


def test_a_command_line_without_a_word_on_the_iommu_leaves_it_to_the_kernel() -> None:
    text = "$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz-6.8.0-60-generic root=UUID=1 ro quiet splash\n"
    outcome = HostSettings().judge(node_of(text))
    assert (outcome.status, "IOMMU" in outcome.why) == (Status.UNKNOWN, True)
