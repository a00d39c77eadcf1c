"""RDMA devices in sysfs: identity, ports, GIDs and counters, for InfiniBand, RoCE and EFA alike."""

from typing import List, Optional

from topodiag_probes.interface import Context, Probe, TreeProbe
from topodiag_probes.tree import Tree

CLASS = "sys/class/infiniband"

_DEVICE = ("fw_ver", "hca_type", "board_id", "hw_rev", "node_guid", "sys_image_guid", "node_desc", "node_type")
_PORT = ("state", "phys_state", "rate", "link_layer", "lid", "sm_lid", "cap_mask")
_COUNTERS = ("counters", "hw_counters")
_NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


def _counters(tree: Tree, ctx: Context, folder: str) -> None:
    for group in _COUNTERS:
        path = "%s/%s" % (folder, group)
        tree.texts(path, ctx.root.names(path))


def _gids(tree: Tree, ctx: Context, port: str) -> None:
    """GIDs in use. A table has up to 256 entries, nearly all of them empty, and their attributes answer EINVAL."""
    for index in ctx.root.names(port + "/gids"):
        if ctx.root.text("%s/gids/%s" % (port, index)) == _NO_GID:
            continue
        tree.text("%s/gids/%s" % (port, index))
        tree.text("%s/gid_attrs/types/%s" % (port, index))
        tree.text("%s/gid_attrs/ndevs/%s" % (port, index))


class SysInfiniband(TreeProbe):
    """Every RDMA device and port."""

    id = "sys-infiniband"
    kind = "sys-infiniband"
    file = "trees/sys-infiniband.tree"
    about = "RDMA devices and ports: firmware, state, rate, GIDs, counters"
    keeps = ("of each device and port: firmware, GUIDs, description, state, rate, LIDs, GIDs, counters",)
    needs = "/" + CLASS
    sampled = True
    absent = "no RDMA devices in sysfs"

    def paths(self) -> Optional[List[str]]:
        return [CLASS]

    def again(self) -> Optional[Probe]:
        return SysInfinibandCounters()

    def collect(self, tree: Tree, ctx: Context) -> None:
        for device in tree.folder(CLASS):
            path = "%s/%s" % (CLASS, device)
            tree.link(path)
            tree.texts(path, _DEVICE)
            tree.link(path + "/device")
            tree.text(path + "/device/numa_node")
            for interface in ctx.root.names(path + "/device/net"):
                tree.mark("%s/device/net/%s" % (path, interface))
            _counters(tree, ctx, path)
            for number in ctx.root.names(path + "/ports"):
                port = "%s/ports/%s" % (path, number)
                tree.texts(port, _PORT)
                _counters(tree, ctx, port)
                _gids(tree, ctx, port)


class SysInfinibandCounters(TreeProbe):
    """The counters once more."""

    id = "sys-infiniband-counters"
    kind = "sys-infiniband"
    file = "trees/sys-infiniband-counters.tree"
    about = "RDMA port counters once more, with --sample"
    keeps = ("counters",)
    needs = "/" + CLASS
    absent = "no RDMA devices in sysfs"

    def paths(self) -> Optional[List[str]]:
        return [CLASS]

    def collect(self, tree: Tree, ctx: Context) -> None:
        for device in ctx.root.names(CLASS):
            path = "%s/%s" % (CLASS, device)
            _counters(tree, ctx, path)
            for number in ctx.root.names(path + "/ports"):
                _counters(tree, ctx, "%s/ports/%s" % (path, number))


def probes() -> List[Probe]:
    return [SysInfiniband()]
