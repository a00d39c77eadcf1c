"""Network interfaces in sysfs, routes and bonds."""

from typing import List, Optional

from topodiag_probes.interface import Context, Probe, TreeProbe
from topodiag_probes.reduced import local_addresses, local_addresses6
from topodiag_probes.tree import Tree

CLASS = "sys/class/net"
BONDING = "proc/net/bonding"
ROUTES = ("proc/net/route", "proc/net/ipv6_route")
ADDRESSES, ADDRESSES6 = "proc/net/fib_trie", "proc/net/if_inet6"
ADDRESSES_LIMIT = 4 * 1024 * 1024
"""Bytes of the kernel's table of routes: a router's own has megabytes, of which a few lines are kept."""

_TEXTS = (
    "operstate",
    "carrier",
    "speed",
    "mtu",
    "carrier_changes",
    "carrier_down_count",
    "type",
    "address",
    "duplex",
)
_LINKS = ("device", "master", "device/driver")
VIRTUAL_INTERFACES = 64
"""Interfaces without a device that are read in full: container hosts have thousands, none of which carries a job."""


def interfaces(ctx: Context) -> List[str]:
    """Names of network interfaces; files such as `bonding_masters` are none."""
    return [name for name in ctx.root.names(CLASS) if ctx.root.is_dir("%s/%s" % (CLASS, name))]


def with_device(ctx: Context, name: str) -> bool:
    return ctx.root.exists("%s/%s/device" % (CLASS, name))


def chosen(ctx: Context) -> List[str]:
    """Interfaces with a device, and the first of those without."""
    names = interfaces(ctx)
    physical = [name for name in names if with_device(ctx, name)]
    virtual = [name for name in names if name not in set(physical)]
    return physical + virtual[:VIRTUAL_INTERFACES]


class SysNet(TreeProbe):
    """Every network interface."""

    id = "sys-net"
    kind = "sys-net"
    file = "trees/sys-net.tree"
    about = "network interfaces: state, speed, MTU, statistics; addresses, routes and bonds"
    keeps = (
        "of each interface: name, MAC address, state, speed, MTU, driver, counters",
        "IP addresses of the node, routes and bonds",
    )
    needs = "/" + CLASS
    sampled = True
    absent = "no network interfaces in sysfs"

    def paths(self) -> Optional[List[str]]:
        return [CLASS, *ROUTES, ADDRESSES, ADDRESSES6, BONDING]

    def again(self) -> Optional[Probe]:
        return SysNetCounters()

    def collect(self, tree: Tree, ctx: Context) -> None:
        for name in chosen(ctx):
            path = "%s/%s" % (CLASS, name)
            tree.link(path)
            tree.texts(path, _TEXTS)
            for link in _LINKS:
                tree.link("%s/%s" % (path, link))
            tree.texts(path + "/statistics", ctx.root.names(path + "/statistics"))
        for route in ROUTES:
            tree.text(route)
        tree.text(ADDRESSES, ADDRESSES_LIMIT, keep=local_addresses)
        tree.text(ADDRESSES6, keep=local_addresses6)
        tree.texts(BONDING, ctx.root.names(BONDING))


class SysNetCounters(TreeProbe):
    """The counters once more."""

    id = "sys-net-counters"
    kind = "sys-net"
    file = "trees/sys-net-counters.tree"
    about = "network interface counters once more, with --sample"
    keeps = ("counters",)
    needs = "/" + CLASS
    absent = "no network interfaces in sysfs"

    def paths(self) -> Optional[List[str]]:
        return [CLASS]

    def collect(self, tree: Tree, ctx: Context) -> None:
        for name in chosen(ctx):
            path = "%s/%s" % (CLASS, name)
            tree.texts(path, ("carrier_changes", "carrier_down_count"))
            tree.texts(path + "/statistics", ctx.root.names(path + "/statistics"))


def probes() -> List[Probe]:
    return [SysNet()]
