"""What evidence can speak of. A source declares its topics, a node remembers which were spoken of, and checks and
reports ask the node: nobody else lists sources by name."""

from __future__ import annotations

from enum import Enum


class Topic(Enum):
    """Something of a machine that a source answers for: who speaks of it would also say that there is none."""

    GPUS = "the GPUs, as the driver counts them"
    DRIVER = "the NVIDIA driver"
    NVLINKS = "NVLinks"
    GPU_PAIRS = "the way between GPUs"
    PCI = "PCI functions"
    RDMA_DEVICES = "every RDMA device"
    FABRIC = "ports of the fabric, by its management"
    INTERFACES = "network interfaces"
    CPUS = "processors and NUMA nodes"
    OS = "the operating system, or the container around the tool"
    SERVICES = "services of the system"
    KERNEL_LOG = "messages of the kernel"
    PROCESSES = "processes that use GPUs, and where they are bound"
    SETTINGS = "NCCL's settings and files of settings"
    TOPOLOGY_FILE = "a topology file of NCCL"
