"""Faults of a device or a limit that a job's own output names: NCCL, CUDA, torch, UCX or a launcher says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.bus_errors import in_nccl, of_no_page
from topodiag.checks.job.launcher import launched_on
from topodiag.checks.shared.words import hosts_word, quoted, rank_word
from topodiag.lazy import dataclass
from topodiag.model.devices import Nic
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.model.node import Node
from topodiag.model.topics import Topic
from topodiag.words.fold import plural

_PLAIN_DRIVERS = frozenset({"virtio-pci", "virtio_net", "ena", "e1000", "e1000e", "igb", "igc", "tg3", "vmxnet3", "gve",
                            "r8169", "hv_netvsc"})  # fmt: skip
"""Drivers of Ethernet that have no RDMA beside them (linux drivers/net)."""
GPU_ENDS = "the rank of this GPU ends, and with it the job"


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of a fault: the end of the message, what should be, what to do, and how sure the line alone is."""

    message: str
    expected: str
    fix: tuple[str, ...]
    cost: str
    sure: Confidence = Confidence.HIGH
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class Named:
    """The lines that name one fault, in the order of the log."""

    fault: str
    events: tuple[Event, ...]


class FaultInLog(JobCheck[Named]):
    """A fault by its name in a job's lines. `words` are by the name of the fault (evidence/nccl_log/grammar)."""

    words: ClassVar[Mapping[str, Words]]

    def observe(self, judged: Job, peers: Sequence[Job]) -> Named | Outcome:
        for fault in self.words:
            told = tuple(event for event in judged.events if event.details.get("fault") == fault)
            if told:
                return Named(fault, told)
        return self.not_applicable(judged, "no line of the job names such a fault: `topodiag scan` of the node does")

    def tell(self, judged: Job, observed: Named) -> Iterator[Finding]:
        words, told = self.words[observed.fault], observed.events
        ranks = sorted({event.rank for event in told if event.rank >= 0})
        hosts = _hosts(judged, told)
        at = hosts_word(hosts) or (rank_word(ranks) if ranks else "a node")
        yield self.finding(
            words.severity,
            f"{at}: {words.message}",
            observed=quoted(told[0].text, 200) + (f"; {plural(len(told), 'line')}" if len(told) > 1 else ""),
            expected=words.expected,
            fix=words.fix,
            nodes=hosts,
            ranks=ranks,
            cost=Cost(text=words.cost),
            evidence=[event.origin for event in told],
            confidence=words.sure,
        )


def _hosts(job: Job, told: Sequence[Event]) -> list[str]:
    """Where it was said, or where its rank runs."""
    named = (
        event.details.get("host") or event.host or (job.by_rank[event.rank].host if event.rank in job.by_rank else "")
        for event in told
    )
    hosts = list(dict.fromkeys(host for host in named if host))
    by_launcher = "" if hosts or len({event.rank for event in told}) > 1 else launched_on(job, told[0].rank)
    return hosts or ([by_launcher] if by_launcher else [])


class GpuLostInLog(FaultInLog):
    """GPU001 by a job's output: NVML no longer reaches a GPU."""

    id = "GPU001"
    title = "a GPU of a job's node is lost"
    words: ClassVar[Mapping[str, Words]] = {
        "lost": Words(
            "a GPU is lost: NVML no longer reaches it",
            "all GPUs of the job answer until it ends",
            ("`dmesg -T | grep -i xid` and `nvidia-smi -L` on the node: which GPU is missing",
             "drain the node, and power it off and on: a reboot alone may not bring the GPU back"),
            GPU_ENDS,
        ),
        "no gpus": Words(
            "nvidia-smi finds no GPU, though the driver runs",
            "all GPUs of the node in `nvidia-smi -L`",
            ("`lspci -d 10de:` and `dmesg -T | grep -iE 'nvrm|xid'` on the node: GPUs that are on the bus and failed to"
             " start say why there",
             "in a container or a job: were GPUs passed in or asked for (`--gpus all`, --gres)?"),
            "no program with a GPU starts here",
            Confidence.MEDIUM,
        ),
        "driver": Words(
            "the driver of the GPUs is not there or does not answer: no GPU of this node can be used",
            "a driver that runs on a node with GPUs",
            ("`lspci -d 10de:` (AMD: 1002:) on the node: are the GPUs on the bus? `lsmod | grep -E 'nvidia|amdgpu'`: is"
             " the driver loaded?",
             "after an update of the kernel: the driver's module for this kernel (`dkms status`); else `dmesg | grep"
             " NVRM`"),
            "no program with a GPU starts on this node",
            Confidence.MEDIUM,
        ),
    }  # fmt: skip


class GpuMemoryInLog(FaultInLog):
    """GPU002 by a job's output: CUDA met an uncorrectable memory error."""

    id = "GPU002"
    title = "a GPU of a job has an uncorrectable memory error"
    words: ClassVar[Mapping[str, Words]] = {
        "ecc": Words(
            "a GPU has an uncorrectable memory error (ECC)",
            "no uncorrectable error",
            ("`nvidia-smi -q -d ECC,ROW_REMAPPER` on the node: which GPU, and whether a row waits to be remapped",
             "drain the node and reset the GPU: a pending row is remapped then; replace the GPU if remapping failed"),
            GPU_ENDS,
        ),
    }  # fmt: skip


class NvlinkErrorInLog(FaultInLog):
    """GPU003 by a job's output: CUDA met an uncorrectable NVLink error."""

    id = "GPU003"
    title = "a GPU of a job has an uncorrectable NVLink error"
    words: ClassVar[Mapping[str, Words]] = {
        "nvlink": Words(
            "CUDA reports an uncorrectable NVLink error",
            "NVLinks without uncorrectable errors",
            ("`dmesg -T | grep -iE 'xid|sxid'` on the node: Xid 74 or 144 to 150 names GPU and link",
             "`nvidia-smi nvlink -e`; reset the GPUs of the node, and drain it if the error comes again"),
            GPU_ENDS,
            Confidence.MEDIUM,
        ),
    }  # fmt: skip


class DriverMismatchInLog(FaultInLog):
    """HST004 by a job's output: the driver's libraries and its kernel module are of different versions, or the
    driver is older than what a program was built for."""

    id = "HST004"
    title = "the NVIDIA driver does not go with the libraries of a program"
    words: ClassVar[Mapping[str, Words]] = {
        "mismatch": Words(
            "the NVIDIA kernel module refuses a program: its libraries are of another version",
            "one version of the driver's libraries and of its kernel module",
            ("`cat /proc/driver/nvidia/version` and `ldconfig -p | grep -E 'libcuda|nvidia-ml'`, in the container too:"
             " which of the two is older",
             "after an update reload the module (no GPU in use) or reboot; in containers pass in the host's libraries"),
            "no CUDA call works in such a process: its rank ends before NCCL's init",
        ),
        "old driver": Words(
            "the driver of the GPUs is older than the CUDA that a program was built for, or the program sees none",
            "a driver at least as new as the CUDA of the program",
            ("`nvidia-smi` here, in the container too: the CUDA version in its head is the newest that the driver can;"
             " beside it what the program brings (`pip list | grep -i cuda-runtime`, torch.version.cuda)",
             "a newer driver on the node, or a program and an image that were built for an older CUDA; for data center"
             " GPUs the package cuda-compat",
             "no nvidia-smi here: the container was started without GPUs (`--gpus all`), or the driver is not loaded"),
            "no CUDA call works in such a process: its rank ends before NCCL's init",
        ),
    }  # fmt: skip


BUS_IN_NCCL, BUS_NO_PAGE = "bus error in nccl", "bus error"
"""What no line names alone: a signal, and the stack below it."""
_ROOM = (
    "room in /dev/shm for NCCL's and the data loaders' segments",
    ("`df -h /dev/shm` in the job's container: 64 MB is the container runtime's default",
     "give it more: `docker run --shm-size=8g` or `--ipc=host`, in Kubernetes an emptyDir of medium Memory"),
    "the ranks of this node end while they connect",
)  # fmt: skip
"""What should be, what to do, and what it costs that there is none."""


class LimitInLog(FaultInLog):
    """HST001 by a job's output: a limit of the host or the container is reached."""

    id = "HST001"
    title = "a limit of a job's node or container is reached"
    words: ClassVar[Mapping[str, Words]] = {
        "shm": Words(
            "shared memory cannot be made: /dev/shm is too small for the job",
            *_ROOM,
        ),
        "small shm": Words(
            "its /dev/shm is small: what the container runtime gives unasked",
            "room in /dev/shm for NCCL's and the data loaders' segments",
            ("`docker run --shm-size=8g` or `--ipc=host`, in Kubernetes an emptyDir of medium Memory",),
            "NCCL's shared memory between GPUs without P2P, and data loaders, may not fit",
            Confidence.MEDIUM,
            Severity.WARNING,
        ),
        "memlock": Words(
            "memory for RDMA could not be registered or locked",
            "registered memory for RDMA on every rank",
            ("`ulimit -l` inside the job: a low limit of locked memory is the usual reason, and the launcher's daemon"
             " passes it on. Where it is unlimited, the kernel, the driver or the adapter refused: `uname -r`, `dmesg`,"
             " `ibv_devinfo -v` (max_mr)",
             "where `ulimit -l` is low: LimitMEMLOCK=infinity for the daemon (slurmd, containerd), `--ulimit"
             " memlock=-1` for a container, memlock in /etc/security/limits.conf for logins"),
            "RDMA buffers are not registered: the communicator fails",
            Confidence.MEDIUM,
        ),
        "files": Words(
            "too many open files: the limit of the process is reached",
            "a limit of open files for all connections of the job",
            ("`ulimit -n` inside the job: raise it (LimitNOFILE= of the daemon, `--ulimit nofile=`)",),
            "connections are not opened: the communicator fails",
        ),
        BUS_IN_NCCL: Words(
            "a bus error inside NCCL: most likely /dev/shm is too small for its segments",
            *_ROOM,
            Confidence.MEDIUM,
        ),
        BUS_NO_PAGE: Words(
            "a bus error for memory that has no page behind it: mostly /dev/shm is too small; else a file that a"
            " program maps became shorter",
            *_ROOM,
            Confidence.LOW,
        ),
    }  # fmt: skip

    def observe(self, judged: Job, peers: Sequence[Job]) -> Named | Outcome:
        said = super().observe(judged, peers)
        if isinstance(said, Named):
            return said
        for fault, told in ((BUS_IN_NCCL, in_nccl(judged)), (BUS_NO_PAGE, of_no_page(judged))):
            if told:
                return Named(fault, told)
        return said


class DevicesUnseenInLog(FaultInLog):
    """HST002 by a job's output: a program finds or may open no RDMA device, libfabric has no provider, or a process
    cannot open a peer's GPU memory."""

    id = "HST002"
    title = "a job's processes do not see the devices that they need"
    words: ClassVar[Mapping[str, Words]] = {
        "no rdma": Words(
            "a verbs program finds no RDMA device",
            "the adapters of the node in `ibv_devices`, in the container too",
            ("`ls /sys/class/infiniband /dev/infiniband` on the node and in the container: is it the node that has none"
             " (driver, firmware), or were they not passed in?",
             "devices there and none found: the image's rdma-core is older than the node's driver; take a newer image"),
            "no RDMA from here: NCCL goes over sockets",
            Confidence.MEDIUM,
        ),
        "rdma denied": Words(
            "a process cannot open the RDMA devices in /dev/infiniband: missing, or no permission",
            "/dev/infiniband/uverbs* there and open to the job, in the container too",
            ("`ls -l /dev/infiniband` on the node and in the container: nodes on the node alone were not passed in"
             " (Docker: --device=/dev/infiniband; Kubernetes: the RDMA device plugin's resource in the pod)",
             "devices present and permission denied: check their mode, and the device rules of the container's cgroup"),
            "no RDMA from here: NCCL goes over sockets",
            Confidence.MEDIUM,
        ),
        "not given": Words(
            "a container does not get its GPUs",
            "the GPUs that were asked for in `nvidia-smi -L` within the container",
            ("`nvidia-ctk --version` and the runtime's configuration on the node: is the NVIDIA container toolkit there"
             " and the runtime told of it (`nvidia-ctk runtime configure`, then restart it)?",
             "GPUs that were there and are refused now: a `systemctl daemon-reload` took the devices from the"
             " container's cgroup; start it again, and pass the device nodes by --device or CDI"),
            "no rank of this container starts, or those that run lose their GPUs",
            Confidence.MEDIUM,
        ),
        "umad": Words(
            "a tool of the fabric cannot open an adapter's management device (/dev/infiniband/umad*)",
            "/dev/infiniband/umad* there and open to whoever asks",
            ("`ls -l /dev/infiniband` here and on the host; root, or the group of these nodes; the module ib_umad",),
            "the tool tells nothing of the fabric; jobs need the uverbs nodes beside it",
            Confidence.MEDIUM,
            Severity.WARNING,
        ),
        "no provider": Words(
            "libfabric has no such provider, or finds no device for it (fi_getinfo: -61)",
            "a provider listed by `fi_info -p NAME`, in the container too",
            ("`fi_info --version` and `fi_info -l`: is it the fabric's own libfabric (EFA: /opt/amazon/efa), and has it"
             " the provider?",
             "`ls /sys/class/infiniband /dev/infiniband` on the node and in the container: does the instance have the"
             " adapter, is its driver loaded, was it passed in?"),
            "the plugin that needs this provider does not come up: NCCL goes over sockets",
            Confidence.MEDIUM,
        ),
        "ordinal": Words(
            "a process asks for a GPU that it does not see",
            "a GPU for each rank of a node among those that its process sees",
            ("`nvidia-smi -L` and `printenv CUDA_VISIBLE_DEVICES` in the job: fewer GPUs than ranks on the node? Then"
             " the launcher put too many ranks there (hostfile, `--ntasks-per-node`, `-N`, `--nproc_per_node`)",
             "the device is chosen by the global rank, or each task sees its own GPU only: choose it by the local rank,"
             " or ask for --gpus or --gres in place of --gpus-per-task",
             "in containers: are the GPUs passed in (`--gpus all`, the device plugin's resource in the pod)?"),
            "the rank ends before its communicator",
            Confidence.MEDIUM,
        ),
        "no cuda": Words(
            "CUDA does not start in a process, with an error that it calls unknown: /dev/nvidia-uvm is mostly what is"
            " missing",
            "/dev/nvidia-uvm in the container of each rank, and the module nvidia_uvm on its node",
            ("`ls -l /dev/nvidia*` in the job's container, `lsmod | grep nvidia_uvm` on the node: not loaded, `modprobe"
             " nvidia_uvm` and `nvidia-modprobe -u -c=0`; on the node alone, pass it in (`--gpus all`, CDI, --device)",
             "nvidia-smi works without it: that it lists the GPUs says nothing here",
             "device nodes there: does the program change CUDA_VISIBLE_DEVICES after its start, and does `dmesg | grep"
             " -iE 'xid|nvrm'` name a GPU?"),
            "the rank ends before its communicator",
            Confidence.MEDIUM,
        ),
        "ipc": Words(
            "a process cannot open the GPU memory of a peer (cuIpcOpenMemHandle)",
            "processes of a node that see each other's GPUs",
            ("`srun .. printenv CUDA_VISIBLE_DEVICES`: with --gpus-per-task or --gpu-bind each task sees its own GPU"
             " only; ask for --gpus or --gres and choose the device by the local rank",
             "in containers: one container for all ranks of a node, or a shared IPC namespace (`--ipc=host`)"),
            "transfers between GPUs of the node fail",
            Confidence.MEDIUM,
        ),
    }  # fmt: skip

    def observe(self, judged: Job, peers: Sequence[Job]) -> Named | Outcome:
        made = super().observe(judged, peers)
        machines = judged.machines.values()
        if isinstance(made, Named) and made.fault == "no rdma" and machines and all(map(_has_no_adapter, machines)):
            return self.clean(judged)
        return made


def _has_no_adapter(node: Node) -> bool:
    """Whether all PCI functions of a node were seen, and none of its network cards can do RDMA: then no verbs program
    finds one there, and nothing is wrong with that."""
    return Topic.PCI in node.told and not any(nic.rdma_name or not _is_plain(nic) for nic in node.nics)


def _is_plain(nic: Nic) -> bool:
    return (nic.driver.get("") in _PLAIN_DRIVERS) or nic.part.get("").startswith("virtio")


TOLD_BY = frozenset(
    fault
    for check in (GpuLostInLog, GpuMemoryInLog, NvlinkErrorInLog, DriverMismatchInLog, LimitInLog, DevicesUnseenInLog)
    for fault in check.words
) | {"fabric", "busy", "removed", "absent", "rank twice", "no such rank", "worlds"}
"""Faults that a check of their own tells: where they are all that went wrong, JOB005 has nothing to add."""
