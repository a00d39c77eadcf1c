"""HST001 to HST003 from what people paste of a host: limits, /dev/shm, device nodes, the kernel's command line."""

from __future__ import annotations

import pytest

from tests.evidence.filled import node_of
from topodiag.checks.node.devices_given import DevicesNotGiven
from topodiag.checks.node.host_settings import HostSettings
from topodiag.checks.node.limits import HostLimits
from topodiag.model.finding import Outcome, Severity, Status


def only(outcome: Outcome) -> tuple[Severity, str]:
    assert outcome.status is Status.FINDING, outcome.why
    (finding,) = outcome.findings
    return finding.severity, finding.message


@pytest.mark.parametrize(
    "text",
    [
        "$ ulimit -l\n64\n",
        "root@pod-0:/workspace# ulimit -l\n64\n",
        "max locked memory       (kbytes, -l) 64\n",
        "max locked memory           (kbytes, -l) 64\nopen files                          (-n) 1024\n",
        "Max locked memory         65536                65536                bytes     \n",
    ],
)
def test_a_small_limit_on_locked_memory_is_found_in_every_form(text: str) -> None:
    severity, message = only(HostLimits().judge(node_of(text)))
    assert severity is Severity.WARNING
    assert "64 KiB" in message


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("shm              64M     0   64M   0% /dev/shm\n", Severity.ERROR),
        ("$ df -h /dev/shm\nFilesystem      Size  Used Avail Use% Mounted on\nshm   64M   12M   52M  19% /dev/shm\n",
         Severity.ERROR),
        ("shm                65536       0     65536   0% /dev/shm\n", Severity.ERROR),
        ("tmpfs           756G  756G  1.0M 100% /dev/shm\n", Severity.ERROR),
    ],
)  # fmt: skip
def test_a_small_or_full_dev_shm_is_found_in_df_alone(text: str, severity: Severity) -> None:
    assert only(HostLimits().judge(node_of(text)))[0] is severity


@pytest.mark.parametrize(
    "text",
    [
        "$ ulimit -l\nunlimited\n",
        "tmpfs           756G   12M  756G   1% /dev/shm\n",
        "max locked memory (kbytes, -l) unlimited\n",
    ],
)
def test_limits_that_suffice_are_clean(text: str) -> None:
    assert HostLimits().judge(node_of(text)).status is Status.CLEAN


def test_the_soft_limit_on_open_files_says_nothing_for_nccl_raises_it() -> None:
    text = "max locked memory (kbytes, -l) unlimited\nopen files (-n) 1024\n"
    assert HostLimits().judge(node_of(text)).status is Status.CLEAN


def test_a_device_that_ls_does_not_find_is_named() -> None:
    text = "ls: cannot access '/dev/nvidia-caps-imex-channels': No such file or directory\n"
    assert "IMEX" in only(DevicesNotGiven().judge(node_of(text)))[1]
    text = "# ls /dev/infiniband\nls: cannot access '/dev/infiniband': No such file or directory\n"
    assert "uverbs" in only(DevicesNotGiven().judge(node_of(text)))[1]


def test_a_translating_iommu_is_a_hint_and_passthrough_is_right() -> None:
    asked = "$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz-5.15 root=UUID=1 ro intel_iommu=on\n"
    assert only(HostSettings().judge(node_of(asked)))[0] is Severity.WARNING
    assert HostSettings().judge(node_of(asked.replace("on\n", "on iommu=pt\n"))).status is Status.CLEAN
    logged = "[    0.812250] iommu: Default domain type: Translated \n"
    assert only(HostSettings().judge(node_of(logged)))[0] is Severity.WARNING
    assert HostSettings().judge(node_of(logged.replace("Translated", "Passthrough"))).status is Status.CLEAN


def test_without_a_word_on_the_host_nothing_is_claimed() -> None:
    node = node_of("[  1.0] NVRM: Xid (PCI:0000:1b:00): 31, pid=1, name=a, MMU Fault\n")
    for check in (HostLimits(), DevicesNotGiven(), HostSettings()):
        assert check.judge(node).status is Status.UNKNOWN
