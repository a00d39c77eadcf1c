"""NET005 on machines of AMD: what RCCL prints of ANP, AINIC and the OFI plugin on Slingshot, and what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

import topodiag

ANP = "NCCL_NET_PLUGIN set by environment to librccl-anp.so"
NO_ANP = "NET/Plugin: Could not find: librccl-anp.so. Using internal net plugin."
NO_DEVICE = "NET/IB : No device found."
NO_LIBRARY = "NET/Plugin : dlerror=librccl-net.so: cannot open shared object file No plugin found (librccl-net.so)"
CXI = "NET/OFI Selected provider is cxi, fabric is cxi (found 4 nics)"


def log(network: str, *texts: str, interface: str = "ens9") -> str:
    """Two nodes of two ranks, whose ring goes over `network`."""
    lines = []
    for rank in range(4):
        node, local, after = rank // 2, rank % 2, (rank + 1) % 4
        head = f"ai-{node}:{100 + local}:{200 + local} [{local}] NCCL INFO "
        over = "NET/Socket/0" if network == "Socket" else f"NET/{network}/0/GDRDMA"
        via = f"[send] via {over}" if after // 2 != node else "via P2P/IPC"
        using = f"Socket : Using [0]{interface}:10.0.0.{node}<0>"
        if network == "IB":
            using = f"IB : Using [0]ionic_0:1/RoCE [RO]; OOB {interface}:10.0.0.{node}<0>"
        name = f"comm 0x{rank + 1} rank {rank} nranks 4 cudaDev {local} nvmlDev {local} busId {5 + local}000 commId 0x2"
        lines += ["RCCL version : 2.27.7-HEAD:0d2c4fd", "HIP version  : 7.2.26015"]
        lines += [head + text for text in (*texts, f"NET/{using}", f"Using network {network}")]
        lines += [head + f"ncclCommInitRankConfig_impl {name} - Init START"]
        lines += [
            head + f"Channel 00/0 : {rank}[{5 + local}000] -> {after}[{5 + after % 2}000] {via} comm 0x1 nRanks 04"
        ]
        lines += [head + f"ncclCommInitRankConfig_impl {name} - Init COMPLETE"]
    return "\n".join([*lines, ""])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (log("IB", "NET/Plugin: Loaded net plugin RCCL-ANP (v10)", "ANP plugin loaded successfully"), ""),
        (log("IB", NO_LIBRARY), ""),
        (log("AWS Libfabric", CXI, interface="hsn0"), ""),
        (log("Socket", interface="ens9"), ""),
        (log("Socket", ANP, NO_ANP, NO_DEVICE), "librccl-anp.so asks for a plugin"),
        (log("Socket", ANP, "NET/Plugin: librccl-anp.so: undefined symbol: ionic_dv_x"), "cannot be loaded"),
        (log("Socket", NO_LIBRARY, interface="hsn0"), "without which Slingshot has no RDMA"),
    ],
)
def test_a_plugin_is_missed_only_where_the_job_goes_without_it(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "rccl.log").write_text(text)
    findings = [finding for finding in topodiag.diagnose([str(tmp_path)]).findings if finding.id == "NET005"]
    assert [says in finding.message for finding in findings] == ([True] if says else [])
