"""The operating system, its drivers and limits, and signs of a container or virtual machine."""

import os
import stat
from typing import Dict, List, Optional

from topodiag_probes import reduced
from topodiag_probes.interface import Context, Probe, Reduce, TreeProbe
from topodiag_probes.tree import FILE_LIMIT, Tree

_FILES = (
    "proc/version",
    "proc/cmdline",
    "proc/uptime",
    "proc/modules",
    "proc/self/limits",
    "proc/self/status",
    "proc/meminfo",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/dmesg_restrict",
    "etc/os-release",
    "proc/driver/nvidia/version",
    "proc/driver/nvidia/params",
    "sys/hypervisor/type",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "proc/1/cgroup",
)
KEPT: Dict[str, Reduce] = {
    "proc/version": reduced.kernel_version,
    "proc/cmdline": reduced.kernel_command_line,
    "proc/modules": reduced.modules,
    "proc/self/status": reduced.own_status,
    "proc/meminfo": reduced.memory,
    "etc/os-release": reduced.os_release,
    "proc/driver/nvidia/version": reduced.without_builder,
    "proc/1/cgroup": reduced.cgroup,
}
_MODULES_LIMIT = 1024 * 1024
"""A list that was cut would hide a module, and what is kept of it would not show that it was cut."""
_MODULES = (
    "nvidia",
    "nvidia_peermem",
    "nv_peer_mem",
    "gdrdrv",
    "ib_core",
    "ib_uverbs",
    "mlx5_core",
    "mlx5_ib",
    "efa",
    "bnxt_re",
    "nvidia_fs",
)
_DMI = ("sys_vendor", "product_name", "board_name", "bios_version", "bios_date")
_DEV_PREFIXES = ("nvidia", "gdrdrv", "infiniband", "dxg", "kfd", "nvme-fabrics")
_DEV_FOLDERS = ("infiniband", "nvidia-caps", "nvidia-caps-imex-channels")
DEV_NAMES = 512


class OsState(TreeProbe):
    """Kernel, drivers, limits, container."""

    id = "os-state"
    kind = "os-state"
    file = "trees/os-state.tree"
    about = "kernel, driver and module versions, limits, IOMMU, device nodes, container or VM"
    needs = "/proc"
    root_adds = "whether process 1 runs in a container"
    keeps = (
        "release of the kernel, distribution and version, uptime",
        "of the kernel's command line the parameters of IOMMU, PCI Express, memory, processors and NVIDIA's driver",
        "names of kernel modules, versions and parameters of the drivers, model and UUID of each GPU",
        "limits of the collector, size of memory and of /dev/shm, NUMA balancing, huge pages",
        "maker, product and board; the asset tag of a cloud",
        "words of process 1 by which containers are known; names and modes of device nodes",
    )

    def paths(self) -> Optional[List[str]]:
        return list(_FILES)

    def collect(self, tree: Tree, ctx: Context) -> None:
        root = ctx.root
        for path in _FILES:
            tree.text(path, _MODULES_LIMIT if path == "proc/modules" else FILE_LIMIT, KEPT.get(path))
        for gpu in root.names("proc/driver/nvidia/gpus"):
            tree.text("proc/driver/nvidia/gpus/%s/information" % gpu)
        for client in root.names("sys/kernel/mm/memory_peers"):
            if client.startswith("nv_mem"):
                tree.text("sys/kernel/mm/memory_peers/%s/version" % client)
        for module in _MODULES:
            if root.is_dir("sys/module/" + module):
                tree.mark("sys/module/" + module)
                tree.text("sys/module/%s/version" % module)
        for folder in ("sys/class/iommu", "sys/kernel/iommu_groups"):
            for name in tree.folder(folder):
                tree.mark("%s/%s" % (folder, name))
        tree.texts("sys/class/dmi/id", _DMI)
        tree.text("sys/class/dmi/id/chassis_asset_tag", keep=reduced.asset_tag)
        for marker in (".dockerenv", "run/.containerenv"):
            if root.exists(marker):
                tree.put(marker, "")
        self._container(tree, ctx)
        self._devices(tree, ctx)
        self._shared_memory(tree, ctx)

    @staticmethod
    def _container(tree: Tree, ctx: Context) -> None:
        """Whether process 2 is the kernel's, as on a host and never in a container of its own. Of the environment of
        process 1 only the name of the container manager: the rest is not ours to read."""
        try:
            if ctx.root.read("proc/2/comm").strip() == b"kthreadd":
                tree.put("proc/2/comm", "kthreadd")
        except OSError:
            pass
        try:
            environ = ctx.root.read("proc/1/environ")
        except OSError:
            return
        for entry in environ.split(b"\0"):
            if entry.startswith(b"container="):
                value = reduced.program(entry[len(b"container=") :].decode("utf-8", "surrogateescape"))
                tree.put("proc/1/environ", "container=" + value)

    @staticmethod
    def _devices(tree: Tree, ctx: Context) -> None:
        """Device nodes with their mode and whether this user may open them; they are never opened."""
        names = ["dev/" + name for name in ctx.root.names("dev") if name.startswith(_DEV_PREFIXES)]
        for folder in _DEV_FOLDERS:
            names += ["dev/%s/%s" % (folder, name) for name in ctx.root.names("dev/" + folder)]
        for name in names[:DEV_NAMES]:
            try:
                place = ctx.root.join(name)
                info = os.stat(place)
                if stat.S_ISDIR(info.st_mode):
                    tree.mark(name)
                    continue
                access = ("r" if os.access(place, os.R_OK) else "-") + ("w" if os.access(place, os.W_OK) else "-")
            except OSError:
                continue
            tree.put(name, "mode=%04o access=%s" % (stat.S_IMODE(info.st_mode), access))

    @staticmethod
    def _shared_memory(tree: Tree, ctx: Context) -> None:
        try:
            info = os.statvfs(ctx.root.join("dev/shm"))
        except OSError:
            return
        size, free = info.f_blocks * info.f_frsize, info.f_bavail * info.f_frsize
        tree.put("statvfs/dev/shm", "size=%d avail=%d" % (size, free))


def probes() -> List[Probe]:
    return [OsState()]
