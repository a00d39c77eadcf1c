"""Whose machine this is: bare metal or a guest, in a container or not, and what the firmware calls it.

The hypervisors' DMI strings are those that their makers document and that systemd-detect-virt(1) looks for.
"""

from __future__ import annotations

import re

from topodiag.evidence.readings import is_present, value_line
from topodiag.evidence.tree import Tree, TreeFile
from topodiag.lazy import dataclass, regex

_DMI = "sys/class/dmi/id/"

_GUESTS = (
    ("kvm", "kvm"), ("openstack", "kvm"), ("kubevirt", "kvm"), ("rhev", "kvm"), ("qemu", "qemu"),
    ("vmware", "vmware"), ("virtualbox", "oracle"), ("innotek", "oracle"), ("xen", "xen"), ("bochs", "bochs"),
    ("parallels", "parallels"), ("bhyve", "bhyve"), ("nutanix ahv", "kvm"), ("cloud-hypervisor", "cloud-hypervisor"),
    ("google compute engine", "google"), ("amazon ec2", "amazon"), ("apple virtualization", "apple"),
)  # fmt: skip

_BARE_EC2 = regex(r"\.metal(?:-|$)", re.IGNORECASE)
"""EC2 instance types without a hypervisor: `p4d.metal`, `m7i.metal-24xl`."""

_MAKERS = (
    "aivres", "amd corporation", "asrock", "asus", "atos", "bull", "celestica", "cisco", "cray", "dell", "eviden",
    "foxconn", "fujitsu", "giga computing", "gigabyte", "gooxi", "h3c", "hewlett", "hpe", "hp", "hyve", "ibm",
    "ieit", "ingrasys", "inspur", "intel", "inventec", "lenovo", "megware", "mitac", "msi", "micro-star", "nettrix",
    "nvidia", "oracle corporation", "pegatron", "penguin", "qct", "quanta", "sugon", "super micro", "supermicro",
    "suma", "tyan", "wistron", "wiwynn", "xfusion", "zt systems", "ztsystems", "meta", "facebook",
)  # fmt: skip
"""Who builds servers. A vendor that is not here is not taken for bare metal: clouds put their own names in DMI."""

_PLACEHOLDERS = frozenset(
    {
        "", "system product name", "system manufacturer", "to be filled by o.e.m.", "default string", "none",
        "not specified", "not applicable", "n/a", "unknown", "0123456789", "system version", "product name",
    }
)  # fmt: skip

_CGROUPS = (
    ("kubepods", "kubernetes"), ("libpod", "podman"), ("/docker", "docker"), ("docker-", "docker"), ("/lxc", "lxc"),
    ("lxc.payload", "lxc"), ("cri-containerd", "kubernetes"), ("machine.slice/systemd-nspawn", "systemd-nspawn"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word, and the line that says so; without a word, why."""

    word: str | None
    file: TreeFile | None = None
    line: tuple[int, str] | None = None
    why: str = ""


def _dmi(tree: Tree, name: str) -> tuple[str, TreeFile | None]:
    """A DMI string and its file; placeholders of careless firmware are no strings."""
    file = tree.files.get(_DMI + name)
    text = value_line(file)[1] if file is not None and file.lines else ""
    return ("" if text.lower() in _PLACEHOLDERS else text[:120]), file


def hypervisor(tree: Tree) -> Verdict:
    """The hypervisor, `none` on bare metal, or unknown where the firmware's name is of neither."""
    vendor, vendor_file = _dmi(tree, "sys_vendor")
    product, product_file = _dmi(tree, "product_name")
    if _BARE_EC2.search(product) and vendor.lower().startswith("amazon"):
        return Verdict("none", product_file)
    if vendor.lower().startswith("microsoft") and product.lower() == "virtual machine":
        return Verdict("microsoft", product_file)
    # The product first: QEMU's product names are plain PCs, but clouds put their own product over QEMU's vendor.
    for text, file in ((product, product_file), (vendor, vendor_file), _dmi(tree, "board_name")):
        for part, name in _GUESTS:
            if _has_word(text.lower(), part):
                return Verdict(name, file)
    kind = tree.files.get("sys/hypervisor/type")
    if kind is not None and value_line(kind)[1]:
        return Verdict(value_line(kind)[1][:40], kind)
    if any(_has_word(vendor.lower(), maker) for maker in _MAKERS):
        return Verdict("none", vendor_file)
    if vendor:
        return Verdict(None, vendor_file, why="DMI names a vendor of neither servers nor hypervisors that is known")
    if vendor_file is not None:
        return Verdict(None, vendor_file, why=f"no DMI vendor: {vendor_file.error or 'empty'}")
    return Verdict(None, why="no DMI strings in the evidence")


def _has_word(text: str, part: str) -> bool:
    """Whether a name begins a word of the text: `kvm` in `KVM Virtual Machine`, never `hp` in `sharp`."""
    at = text.find(part)
    return at >= 0 and (at == 0 or not text[at - 1].isalnum())


def system(tree: Tree) -> Verdict:
    """The product as DMI calls it, `VENDOR PRODUCT`; on EC2 the product is the instance type and stands alone."""
    vendor, _ = _dmi(tree, "sys_vendor")
    product, file = _dmi(tree, "product_name")
    if not product:
        return Verdict(None, file, why="DMI names no product")
    if vendor.lower().startswith("amazon") or product.lower().startswith(vendor.lower()):
        return Verdict(product, file)
    return Verdict(f"{vendor} {product}", file)


def bios(tree: Tree) -> Verdict:
    """The version of the system's firmware, with its date."""
    version, file = _dmi(tree, "bios_version")
    date, _ = _dmi(tree, "bios_date")
    if not version:
        return Verdict(None, file, why="DMI names no BIOS version")
    return Verdict(f"{version} {date}".rstrip(), file)


def container(tree: Tree) -> Verdict:
    """The container runtime, or `none` without any marker of one and with process 1 where a host's init is."""
    cgroup = tree.files.get("proc/1/cgroup")
    for number, text in cgroup.lines if cgroup is not None else ():
        for part, name in _CGROUPS:
            if part in text:
                return Verdict(name, cgroup, (number, text))
    # The marker files of an image stay in a virtual machine that is made of it: there process 2 is the kernel's.
    own_kernel = tree.files.get("proc/2/comm") if is_present(tree, "proc/2/comm") else None
    if is_present(tree, "run/.containerenv") and own_kernel is None:
        return Verdict("podman", tree.files["run/.containerenv"])
    environ = tree.files.get("proc/1/environ")
    for number, text in environ.lines if environ is not None else ():
        name, _, value = text.partition("=")
        if name == "container" and value:
            return Verdict(value[:40], environ, (number, text))
    if is_present(tree, ".dockerenv") and own_kernel is None:
        return Verdict("docker", tree.files[".dockerenv"])
    if cgroup is not None and _is_host_init(cgroup):
        return Verdict("none", cgroup)
    if own_kernel is not None:
        return Verdict("none", own_kernel)
    return Verdict(None, cgroup, why="no marker of a container, and nothing that proves a host")


def _is_host_init(cgroup: TreeFile) -> bool:
    """A host's process 1 is in `/init.scope`, or with cgroup v1 in the root of every hierarchy.

    With cgroup v2 a lone `0::/` is what a container sees too, so it proves nothing.
    """
    paths = [text.split(":", 2)[-1].strip() for _, text in cgroup.lines if text.count(":") >= 2]
    return "/init.scope" in paths or (len(paths) > 1 and set(paths) == {"/"})
