"""The operating system, its drivers and limits, and signs of a container or virtual machine."""

import os
import stat
from typing import List, Optional

from topodiag_probes.interface import Context, Probe, TreeProbe
from topodiag_probes.tree import Tree

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
_DMI = ("sys_vendor", "product_name", "board_name", "chassis_asset_tag")
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

    def paths(self) -> Optional[List[str]]:
        return list(_FILES)

    def collect(self, tree: Tree, ctx: Context) -> None:
        root = ctx.root
        for path in _FILES:
            tree.text(path)
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
        for marker in (".dockerenv", "run/.containerenv"):
            if root.exists(marker):
                tree.put(marker, "")
        self._container(tree, ctx)
        self._devices(tree, ctx)
        self._shared_memory(tree, ctx)

    @staticmethod
    def _container(tree: Tree, ctx: Context) -> None:
        """Of the environment of process 1 only the name of the container manager: the rest is not ours to read."""
        try:
            environ = ctx.root.read("proc/1/environ")
        except OSError:
            return
        for entry in environ.split(b"\0"):
            if entry.startswith(b"container="):
                tree.put("proc/1/environ", entry.decode("utf-8", "surrogateescape"))

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
