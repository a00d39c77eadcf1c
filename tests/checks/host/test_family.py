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


def test_limits_that_suffice_are_clean() -> None:
    assert HostLimits().judge(node_of(MEMLOCK + SHM)).status is Status.CLEAN


def test_the_soft_limit_on_open_files_says_nothing_for_nccl_raises_it() -> None:
    text = f"max locked memory (kbytes, -l) unlimited\nopen files (-n) 1024\n{SHM}"
    assert HostLimits().judge(node_of(text)).status is Status.CLEAN


def test_a_device_that_ls_does_not_find_is_named() -> None:
    text = "ls: cannot access '/dev/nvidia-caps-imex-channels': No such file or directory\n"
    assert "IMEX" in only(DevicesNotGiven().judge(node_of(text)))[1]
    text = "# ls /dev/infiniband\nls: cannot access '/dev/infiniband': No such file or directory\n"
    assert "uverbs" in only(DevicesNotGiven().judge(node_of(text)))[1]


def test_a_translating_iommu_is_a_hint_and_passthrough_is_right() -> None:
    asked = "$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz-5.15 root=UUID=1 ro intel_iommu=on\n"
    assert only(HostSettings().judge(node_of(asked)))[0] is Severity.WARNING
    assert HostSettings().judge(node_of(asked.replace("on\n", "on iommu=pt\n"))).status is not Status.FINDING
    logged = "[    0.812250] iommu: Default domain type: Translated \n"
    assert only(HostSettings().judge(node_of(logged)))[0] is Severity.WARNING
    assert HostSettings().judge(node_of(logged.replace("Translated", "Passthrough"))).status is not Status.FINDING


def test_a_command_line_without_a_word_on_the_iommu_leaves_it_to_the_kernel() -> None:
    text = "$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz-6.8.0-60-generic root=UUID=1 ro quiet splash\n"
    outcome = HostSettings().judge(node_of(text))
    assert (outcome.status, "IOMMU" in outcome.why) == (Status.UNKNOWN, True)


def test_without_a_word_on_the_host_nothing_is_claimed() -> None:
    node = node_of("[  1.0] NVRM: Xid (PCI:0000:1b:00): 31, pid=1, name=a, MMU Fault\n")
    for check in (HostLimits(), DevicesNotGiven(), HostSettings()):
        assert check.judge(node).status is Status.UNKNOWN
