"""NCCL settings: those that cost bandwidth, and those that no NCCL reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import fsum

from topodiag.checks.env.rules import Rule, broken, level, undecided
from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared import nccl_variables
from topodiag.checks.shared.devices import compute_nics, distance, gpu_spec, is_up
from topodiag.lazy import dataclass
from topodiag.model.devices import Nic
from topodiag.model.finding import Cost, Finding, Outcome, Severity
from topodiag.model.links import Path
from topodiag.model.maker import makers_of
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_versions import VARIABLES_SINCE, spell_range
from topodiag.model.node import Node
from topodiag.model.provenance import Origin, Topic
from topodiag.words.dialect import Maker
from topodiag.words.units import few, grouped, plural

BOARD = 8
"""GPUs of the boards for which RCCL has known sets of rings (src/graph/rome_models.cc)."""
_OF_NICS = frozenset({"rdma", "own_ib", "only_efa", "gdr_cut_by"})
_OF_PAIRS = frozenset({"nvlink", "pcie_pairs", "through_peers", "nic_of_another_gpu", "nvswitch", "nvls"})
_OF_NO_GPU = frozenset({"rdma", "own_ib", "only_efa", "no_peermem", "runs_kernels", "several_sockets"})
"""Conditions on NICs, on ways between GPUs, and those that ask about no GPU."""
NVLS_SM = 90
"""First compute capability with NVLink SHARP."""


def internal_ib_nics(node: Node) -> tuple[Nic, ...]:
    """The compute NICs that NCCL's own InfiniBand transport serves: not EFA, which has a plug-in of its own."""
    return tuple(nic for nic in compute_nics(node) if (nic.driver.value or "").lower() != "efa")


def uses_internal_ib(node: Node) -> bool:
    """Whether NCCL's own InfiniBand transport would serve the job: the NICs are there, and no plug-in is chosen."""
    for setting in node.settings:
        value = setting.value.strip().lower()
        if setting.name == "NCCL_NET_PLUGIN" and value not in ("", "none"):
            return False
        if setting.name == "NCCL_NET" and value not in ("", "ib", "socket"):
            return False
    return bool(internal_ib_nics(node))


class NodeMachine:
    """The node that settings hold on. Ways between its GPUs are looked at where a rule asks."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.gpus = bool(node.gpus)
        self.several_gpus = len(node.gpus) > 1
        self.whole_board = len(node.gpus) >= BOARD
        self.runs_kernels = self.gpus or Topic.GPUS not in node.topics  # or may have GPUs that nobody looked for
        self.several_sockets = sum(numa.has_cpus for numa in node.numa) > 1
        self.rdma = bool(compute_nics(node))
        self.own_ib = uses_internal_ib(node)
        self.only_efa = self.rdma and not internal_ib_nics(node)
        self.no_peermem = node.os.peermem.value is False

    def lacks(self, condition: str) -> bool:
        """Whether the evidence does not show what a condition is about: NICs, ways between GPUs, or GPUs."""
        name = condition.removeprefix("not ")
        if name in _OF_NICS and not self.rdma and self.node.topics.isdisjoint((Topic.RDMA_DEVICES, Topic.PCI)):
            return True
        if name in _OF_PAIRS and self.several_gpus and not self.node.paths:
            return True
        return name not in _OF_NO_GPU and not self.gpus and Topic.GPUS not in self.node.topics

    @cached_property
    def amd(self) -> bool:
        return makers_of(self.node) == {Maker.AMD}

    @cached_property
    def _pairs(self) -> list[Path]:
        labels = [gpu.label for gpu in self.node.gpus]
        return [path for a in labels for b in labels if a < b and (path := self.node.paths.get((a, b))) is not None]

    @cached_property
    def nvlink(self) -> bool:
        return any(path.type in (PathType.NVL, PathType.NVB) for path in self._pairs)

    @cached_property
    def pcie_pairs(self) -> bool:
        """Whether some GPUs reach each other over PCIe alone, and their driver offers peer-to-peer there."""
        able = all(spec is None or spec.p2p_pcie for spec in map(gpu_spec, self.node.gpus))
        return able and any(path.type >= PathType.PIX for path in self._pairs)

    @cached_property
    def through_peers(self) -> bool:
        """Whether pairs without a direct NVLink go through a peer."""
        return any(path.type is PathType.NVB for path in self.node.paths.values())

    @cached_property
    def nic_of_another_gpu(self) -> bool:
        return any(path.type is PathType.PXN for path in self.node.paths.values())

    @cached_property
    def nvswitch(self) -> bool:
        """Whether all GPUs are of a product that is joined by NVSwitches, and more than two of them are."""
        specs = [gpu_spec(gpu) for gpu in self.node.gpus]
        return len(specs) > 2 and self.nvlink and all(spec is not None and spec.nvswitch for spec in specs)

    @cached_property
    def nvls(self) -> bool:
        """Whether NVLink SHARP is there to be lost: Hopper or later behind NVSwitches, more than two GPUs."""
        specs = [gpu_spec(gpu) for gpu in self.node.gpus]
        return self.nvswitch and all(spec is not None and spec.sm >= NVLS_SM for spec in specs)

    @cached_property
    def nvlink_domain(self) -> bool:
        """Whether a GPU is in a multi-node NVLink domain: its cluster id is there and not all zeros."""
        return any((gpu.fabric.cluster_uuid.value or "").strip("0-") for gpu in self.node.gpus)

    def gdr_cut_by(self, value: str) -> bool:
        """Whether a level keeps every GPU from GPUDirect RDMA with its nearest NIC, which NCCL's own choice allows."""
        path_type = level(value)
        if path_type is None or path_type >= PathType.PXB or not self.rdma:
            return False
        nics, labels = compute_nics(self.node), [gpu.label for gpu in self.node.gpus]
        ways = [[distance(self.node, label, nic.name)[0] for nic in nics] for label in labels]
        nearest = [min((kind for kind in kinds if kind is not None), default=None) for kinds in ways]
        if not nearest or any(kind is None for kind in nearest):
            return path_type < PathType.PIX
        within = [kind for kind in nearest if kind is not None and kind <= PathType.PXB]
        return bool(within) and all(kind > path_type for kind in within)


ENVIRONMENT = "environment"
NOT_JUDGED = "{} may cost bandwidth: the evidence does not show enough of the machine"
SYSTEM_CONF = "etc/nccl.conf"
"""The file that yields to the user's own and to the environment (initEnvFunc, src/misc/param.cc v2.30)."""


@dataclass(frozen=True, slots=True)
class NodeSetting:
    """One variable with one value, wherever it is given that value."""

    name: str
    value: str
    scopes: tuple[str, ...]
    origins: tuple[Origin | None, ...]

    @property
    def place(self) -> str:
        others = f" and {plural(len(self.scopes) - 1, 'other place')}" if len(self.scopes) > 1 else ""
        return f"{self.scopes[0]}{others}"


def given(node: Node) -> tuple[NodeSetting, ...]:
    """Every distinct NAME=value in force: of the environment, the processes on the GPUs, and the conf files."""
    places = grouped(((name, value), (scope, origin)) for name, value, scope, origin in _all(node))
    return tuple(
        NodeSetting(*setting, tuple(dict.fromkeys(scope for scope, _ in at)), tuple(origin for _, origin in at))
        for setting, at in places.items()
    )


def _all(node: Node) -> Iterator[tuple[str, str, str, Origin | None]]:
    rank: dict[str, int] = {}
    for setting in node.settings:
        rank[setting.name] = min(rank.get(setting.name, 9), _rank(setting.scope))
    for setting in node.settings:
        if _rank(setting.scope) == rank[setting.name]:
            yield setting.name, setting.value, setting.scope, setting.origin
    for process in node.processes:
        env = process.nccl_env
        for name, value in sorted((env.value or {}).items()):
            yield name, value, f"process {process.pid}", env.origin


def _rank(scope: str) -> int:
    """Who wins: the environment, then the user's conf file, then the system's. NCCL overwrites nothing."""
    return 0 if scope == ENVIRONMENT else 2 if scope.lstrip("/") == SYSTEM_CONF else 1


def settings_seen(node: Node) -> bool:
    return Topic.SETTINGS in node.topics or bool(node.settings) or any(p.nccl_env.known for p in node.processes)


class CostlySetting(NodeCheck, id="ENV001"):
    """ENV001: a setting that costs bandwidth or disables a feature

    What it finds
        NCCL and CUDA variables, in the environment, in the processes on the GPUs or in nccl.conf, that switch off
        NVLink, peer-to-peer, RDMA, GPUDirect, NVLink SHARP or PXN on a node that has them, that limit channels or
        buffers, or that name too few NICs.

    Why it matters
        Such settings are set once, to get past a bug or to test, and then inherited for years. NCCL_P2P_DISABLE=1
        takes an HGX H100 from about 370 GB/s per GPU to what host memory carries, NCCL_IB_DISABLE=1 from 50 GB/s per
        NIC to TCP.

    Evidence it reads
        The environment that topodiag runs in, NCCL's variables of the processes on the GPUs (your own; root sees
        all), /etc/nccl.conf, ~/.nccl.conf and NCCL_CONF_FILE. In a job's log: `NCCL_X set by environment to V`, and
        what NCCL prints of NVLink, networks and connections; where NCCL prints no setting, commands and dumps of the
        environment above its lines (`+ export`, `mpirun -x`, `env`). Of a measured run: the command above it or the
        job script beside it (`mpirun -x`, `srun --export`, `docker run -e`, `export`), where the run is low.

    When it stays silent
        The feature is not on this node: NCCL_IB_DISABLE=1 without RDMA NICs, with Elastic Fabric Adapters or with a
        network plug-in is no loss, NCCL_P2P_DISABLE=1 neither on GeForce cards, which have no peer-to-peer over PCIe.
        Limits that leave enough. A conf file's line that the environment overrides. Nothing could be read of the
        settings, or of what they would switch off: unknown.

    How to confirm
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV      then run: NCCL prints each setting in force
        all_reduce_perf -b 1M -e 1G -f 2 -g 8                  with the variable and without it

    How to fix
        Unset it where it is given; look into images, module files, launch scripts and /etc/nccl.conf. If a setting
        works round a fault, repair the fault: PCI004 and GDR001 name the usual ones.

    References
        NCCL user guide, environment variables; NCCL src/ v2.30.
    """

    def observe(self, node: Node, peers: Sequence[Node]) -> Outcome:
        if not settings_seen(node):
            return self.unknown(node, "NCCL settings are not in the evidence")
        machine = NodeMachine(node)
        settings = given(node)
        costly = [(one, rule) for one in settings for rule in broken("node", machine, one.name, one.value)]
        findings = [self._report(node, *pair) for pair in costly]
        findings += [self._few_nics(node, one, left) for one in settings if (left := _nics_left(node, one)) is not None]
        unsure = [setting.name for setting in settings if undecided("node", machine, setting.name, setting.value)]
        return self.any_of(node, findings, unknown=NOT_JUDGED.format(few(unsure, 4)) if unsure else "")

    def _report(self, node: Node, setting: NodeSetting, rule: Rule) -> Finding:
        return self.finding(
            self.where(node),
            rule.advice,
            f"{setting.name}={setting.value[:60]} ({setting.place}): {rule.what}",
            observed=f"{setting.name}={setting.value[:80]} in {', '.join(setting.scopes[:3])}",
            evidence=setting.origins,
            settings=((setting.name, None),),
        )

    def _few_nics(self, node: Node, setting: NodeSetting, left: tuple[str, ...]) -> Finding:
        all_nics = _filtered(node)
        lost = [nic.name for nic in all_nics if nic.name not in left]
        rate = fsum(p.rate_gbps.get(0.0) for nic in all_nics if nic.name in lost for p in nic.ports) / 8
        return self.finding(
            self.where(node, nics=lost),
            "few nics",
            f"NCCL_IB_HCA={setting.value[:60]} ({setting.place})"
            f" uses {len(left)} of {plural(len(all_nics), 'compute NIC')}",
            severity=Severity.WARNING if left else Severity.ERROR,
            observed=f"left: {', '.join(left) or 'none'}; not used: {', '.join(lost)}",
            cost=Cost(max(rate, 0.0) or None, len(lost) / len(all_nics), f"{len(lost)} NICs carry nothing"),
            evidence=setting.origins,
            settings=((setting.name, None),),
        )


def _filtered(node: Node) -> tuple[Nic, ...]:
    """The compute NICs that NCCL_IB_HCA can take away: those of NCCL's own InfiniBand transport that are up."""
    return tuple(nic for nic in internal_ib_nics(node) if nic.rdma_name and is_up(nic) is not False)


def _nics_left(node: Node, setting: NodeSetting) -> tuple[str, ...] | None:
    """The compute NICs that an NCCL_IB_HCA filter leaves, or None when it takes none of them away."""
    nics = _filtered(node)
    if setting.name != "NCCL_IB_HCA" or not nics or not setting.value.strip():
        return None
    from topodiag.nccl.topo.hca_list import HcaFilter  # noqa: PLC0415 - it loads NCCL's decisions

    wanted = HcaFilter(setting.value)
    left = tuple(
        nic.rdma_name
        for nic in nics
        if nic.rdma_name and any(wanted.takes(nic.rdma_name, port) for port in [p.number for p in nic.ports] or [1])
    )
    return left if len(left) < len(nics) else None


class UnknownSetting(NodeCheck, id="ENV003"):
    """ENV003: an unknown, deprecated or misspelt NCCL variable

    What it finds
        Names that begin with NCCL_ and that no known version of NCCL reads, above all those one or two letters off a
        real one, and names that were renamed or retired.

    Why it matters
        A misspelt setting is silently not in force: the job runs as if it were not there, and whoever set it believes
        that it is.

    Evidence it reads
        As ENV001: environment, processes on the GPUs, nccl.conf files, settings printed in a job's log.

    When it stays silent
        Variables of plug-ins and tools (NCCL_OFI_, NCCL_FASTRAK_, NCCL_UCX_, NCCL_INSPECTOR_ ...) and those that
        images set to say which NCCL they hold (NCCL_VERSION). Deprecated names that still work: info. No settings
        were read: unknown.

    How to confirm
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV      then run: NCCL prints each variable that it found
        The unknown variable is missing there.

    How to fix
        Correct the name, or remove the line.

    References
        NCCL user guide, environment variables; names read by src/ of every known version.
    """

    def observe(self, node: Node, peers: Sequence[Node]) -> Outcome:
        if not settings_seen(node):
            return self.unknown(node, "NCCL settings are not in the evidence")
        return self.any_of(node, (self._judge_one(node, setting) for setting in given(node)))

    def _judge_one(self, node: Node, setting: NodeSetting) -> Finding | None:
        name = setting.name
        if not name.startswith("NCCL_") or nccl_variables.is_foreign(name):
            return None
        severity, near = Severity.WARNING, ""
        if (old := nccl_variables.renamed(name)) is not None:
            # PyTorch takes the old names, too.
            still = any(word in old.what for word in ("still read", "alias", "PyTorch"))
            severity = Severity.INFO if still else Severity.WARNING
            message, expected = f"{name} is {old.what}", old.now or "no such setting"
            fix = f"use {old.now}" if old.now else f"remove {name}"
        elif name in nccl_variables.known():
            return None
        elif near := nccl_variables.nearest(name) or "":
            message, expected = f"{name} is not a variable of NCCL: misspelt {near}?", near
            fix = f"write {near}={setting.value[:60]}"
        else:
            severity, message = Severity.INFO, f"{name} is read by no NCCL from {spell_range(VARIABLES_SINCE)}"
            expected, fix = "a variable of NCCL", f"remove {name} unless a plug-in reads it"
        return self.finding(
            self.where(node),
            "unknown name",
            f"{message} ({setting.place})",
            severity=severity,
            observed=f"{name}={setting.value[:80]} in {', '.join(setting.scopes[:3])}",
            expected=expected,
            fix=(fix,),
            evidence=setting.origins,
            settings=((name, None), *([(near, setting.value)] if near else [])),
        )
