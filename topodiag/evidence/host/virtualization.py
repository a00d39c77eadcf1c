"""Whose machine this is: bare metal or a guest, in a container or not, and what the firmware calls it.

The hypervisors' DMI strings are those that their makers document and that systemd-detect-virt(1) looks for.
"""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.evidence.readings import is_present, value_line
from topodiag.evidence.tree import Tree, TreeFile
from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data

_DMI = "sys/class/dmi/id/"

_NAMES = own_data("evidence/host/names")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word, and the line that says so; without a word, why."""

    word: str | None
    file: TreeFile | None = None
    line: tuple[int, str] | None = None
    why: str = ""


def verdicts(tree: Tree) -> Iterator[tuple[str, Verdict]]:
    """All of them by the name of the field."""
    yield "virtualization", _hypervisor(tree)
    yield "bios", _bios(tree)
    yield "container", _container(tree)
    yield "system", _system(tree)


def _dmi(tree: Tree, name: str) -> tuple[str, TreeFile | None]:
    """A DMI string and its file; placeholders of careless firmware are no strings."""
    file = tree.files.get(_DMI + name)
    text = value_line(file)[1] if file is not None and file.lines else ""
    return ("" if text.lower() in _NAMES["placeholders"] else text[:120]), file


def _hypervisor(tree: Tree) -> Verdict:
    """The hypervisor, `none` on bare metal, or unknown where the firmware's name is of neither."""
    vendor, vendor_file = _dmi(tree, "sys_vendor")
    product, product_file = _dmi(tree, "product_name")
    if vendor.lower().startswith("amazon") and product.partition(".")[2].partition("-")[0].lower() == "metal":
        return Verdict("none", product_file)  # EC2 instance types without one: `p4d.metal`, `m7i.metal-24xl`
    if vendor.lower().startswith("microsoft") and product.lower() == "virtual machine":
        return Verdict("microsoft", product_file)
    # The product first: QEMU's product names are plain PCs, but clouds put their own product over QEMU's vendor.
    for text, file in ((product, product_file), (vendor, vendor_file), _dmi(tree, "board_name")):
        for part, name in _NAMES["guests"].items():
            if _has_word(text.lower(), part):
                return Verdict(name, file)
    kind = tree.files.get("sys/hypervisor/type")
    if kind is not None and value_line(kind)[1]:
        return Verdict(value_line(kind)[1][:40], kind)
    if any(_has_word(vendor.lower(), maker) for maker in _NAMES["makers"]):
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


def _system(tree: Tree) -> Verdict:
    """The product as DMI calls it, `VENDOR PRODUCT`; on EC2 the product is the instance type and stands alone."""
    vendor, _ = _dmi(tree, "sys_vendor")
    product, file = _dmi(tree, "product_name")
    if not product:
        return Verdict(None, file, why="DMI names no product")
    if vendor.lower().startswith("amazon") or product.lower().startswith(vendor.lower()):
        return Verdict(product, file)
    return Verdict(f"{vendor} {product}", file)


def _bios(tree: Tree) -> Verdict:
    """The version of the system's firmware, with its date."""
    version, file = _dmi(tree, "bios_version")
    date, _ = _dmi(tree, "bios_date")
    if not version:
        return Verdict(None, file, why="DMI names no BIOS version")
    return Verdict(f"{version} {date}".rstrip(), file)


def _container(tree: Tree) -> Verdict:
    """The container runtime, or `none` without any marker of one and with process 1 where a host's init is."""
    cgroup = tree.files.get("proc/1/cgroup")
    for number, text in cgroup.lines if cgroup is not None else ():
        for part, name in _NAMES["cgroups"].items():
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
