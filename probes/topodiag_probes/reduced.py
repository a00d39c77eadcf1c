"""What is kept of files and of output that hold more than a check reads: functions from text to text.

Each keeps the form that its reader knows, so that a bundle reads like the machine.
"""

import re
from typing import Iterable, List, Match, Optional

from topodiag_probes.secrets import GONE, holds_secret
from topodiag_probes.variables import kept_value, wanted

LEFT_OUT = "(left out)"

KERNEL_PARAMETERS = (
    "iommu", "iommu.passthrough", "iommu.strict", "intel_iommu", "amd_iommu", "arm-smmu.disable_bypass",
    "arm-smmu-v3.disable_bypass", "pci", "pcie_aspm", "pcie_aspm.policy", "pcie_ports", "pcie_port_pm",
    "pcie_acs_override", "numa", "numa_balancing", "transparent_hugepage", "hugepages", "hugepagesz",
    "default_hugepagesz", "isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "maxcpus", "nr_cpus", "nosmt",
    "intel_pstate", "amd_pstate", "cpufreq.default_governor", "intel_idle.max_cstate", "processor.max_cstate",
    "cpuidle.off", "idle", "mitigations", "init_on_alloc", "cgroup_enable", "swiotlb", "ro", "quiet",
    "module_blacklist", "modprobe.blacklist", "rd.driver.blacklist",
)  # fmt: skip
"""Of the kernel's command line: what moves DMA, PCI Express, memory and clocks."""
PARAMETER_FAMILIES = ("nvidia.NVreg_", "nvidia_peermem.", "mlx5_core.", "ib_core.", "vfio_iommu_type1.")
_PARAMETER = re.compile(r"([A-Za-z0-9_.-]{1,64})(?:=([A-Za-z0-9_,.:@/;=-]{0,128}))?\Z")
_PARAMETER_NUMBER = re.compile(r"(?i)[0-9][0-9a-fx:./@-]{0,63}[kmgt]?\Z")
_PARAMETER_WORDS_TEXT = (
    "pt nopt on off force soft noforce strict lazy nobypass fullflush biomerge merge nomerge sm_on sm_off igfx_off"
    " pgtbl_v1 pgtbl_v2 irtcachedis realloc nocrs use_crs noacpi nommconf noats noaer nomsi bfsort nobfsort biosirq"
    " assign-busses pcie_bus_perf pcie_bus_safe pcie_bus_peer2peer pcie_bus_tune_off performance powersave"
    " powersupersave schedutil ondemand conservative userspace default native compat downstream multifunction id"
    " enable enabled disable disabled always madvise never auto nosmt passive active guided no_hwp hwp_only"
    " support_acpi_ppc nomwait halt poll domain managed_irq nohz nohz_full memory hugetlb all y n yes no true false"
    " nouveau nvidia nvidia_drm nvidia_uvm nvidia_peermem nv_peer_mem gdrdrv ast mgag200 mlx5_core mlx5_ib irdma ice"
    " bnxt_re i40e ixgbe qede firewire-core usb-storage"
)
_PARAMETER_WORDS = frozenset(_PARAMETER_WORDS_TEXT.split())

_OS_RELEASE = re.compile(r"(?:NAME|VERSION|VERSION_ID|ID|ID_LIKE|PRETTY_NAME|VERSION_CODENAME)=")
_BUILDER = re.compile(r"\s?\([^()\n]{0,200}@[^()\n]{0,200}\)")
_STATUS = ("Cpus_allowed_list:", "Mems_allowed_list:")
_MEMINFO = ("MemTotal:", "MemAvailable:", "HugePages_", "Hugepagesize:")
_CPUINFO = (
    "processor", "physical id", "vendor_id", "cpu family", "model", "model name", "stepping", "cpu", "revision",
    "cpu implementer", "cpu architecture", "cpu variant", "cpu part", "cpu revision", "machine", "platform",
)  # fmt: skip
_PROGRAM = re.compile(r"[A-Za-z0-9_.+-]{1,64}")
_SAID_OF_PROCESS = ("[Not Found]", "[Insufficient Permissions]", "[Unknown Error]", "N/A", "Insufficient Permissions")
_CGROUP_MARKS = (
    ("kubepods", "kubepods"), ("cri-containerd", "cri-containerd-ID"), ("libpod", "libpod-ID"),
    ("docker-", "docker-ID"), ("lxc.payload", "lxc.payload"), ("systemd-nspawn", "systemd-nspawn"),
)  # fmt: skip
_CGROUP_PLAIN = ("", "docker", "lxc", "init.scope", "system.slice", "user.slice", "machine.slice")

_VITAL = re.compile(r"\s{1,4}Capabilities: \[[0-9a-f]{2,3}\] Vital Product Data")
_LSPCI_LEFT = re.compile(r"\s{1,4}DeviceName:")
_PROCESS_NAME = re.compile(r"(<process_name>)([^<]{0,65536})(</process_name>)")
_SERIALS = re.compile(r"(<((?:[a-z_]{1,40}_)?serial(?:_number)?)>)[^<]{1,256}(</\2>)")
_ASIC_SERIAL = re.compile(r'("asic_serial"\s{0,9}:\s{0,9}")[^"]{0,256}(")')

_CONF = re.compile(
    r"(\s*(?:#\s*)?)((?:export|set|setenv|declare -x)\s{1,8})?([A-Za-z_][A-Za-z0-9_]{0,200})(\s{0,64}=\s{0,64})(.*)\Z"
)
_CONF_COMMENT = re.compile(r"\s#")
_CONF_SPACED = re.compile(r"(\s*)([A-Z][A-Z0-9_]{1,200})(\s{1,64})(\S{1,200})(\s*)\Z")

_XML_COMMENT = re.compile(r"<!--[\s\S]*?-->|<!--[\s\S]*")
_XML_BETWEEN = re.compile(r"(>)([^<]*[^<\s][^<]*)(?=<|\Z)")
_XML_ATTRIBUTE = re.compile(r"(\s)([A-Za-z_][A-Za-z0-9_.:-]{0,60})(\s{0,8}=\s{0,8})(\"[^\"<]*\"|'[^'<]*')")
_XML_NUMBERS = re.compile(r"[-+0-9a-fA-FxX.:, ]{0,256}\Z")
_XML_VALUE = re.compile(r"[A-Za-z0-9_./ :()+-]{1,64}\Z")


def kernel_command_line(text: str) -> str:
    """The parameters of KERNEL_PARAMETERS with values of a plain form; the others are not there."""
    kept = []
    for word in text.split():
        found = _PARAMETER.match(word)
        if found is None or not (found.group(1) in KERNEL_PARAMETERS or word.startswith(PARAMETER_FAMILIES)):
            continue
        value = found.group(2) or ""
        parts = [part for part in re.split("[,=;]", value) if part]
        plain = all(part.lower() in _PARAMETER_WORDS or _PARAMETER_NUMBER.match(part) for part in parts)
        kept.append(word if plain and not holds_secret(word) else "%s=(left-out)" % found.group(1))
    return " ".join(kept)


def os_release(text: str) -> str:
    """Name and version of the distribution, without its addresses and its machine's own lines."""
    return "\n".join(line for line in text.split("\n") if _OS_RELEASE.match(line.strip()))


def kernel_version(text: str) -> str:
    """`Linux version RELEASE`, without who built it where."""
    return " ".join(text.split()[:3])


def without_builder(text: str) -> str:
    """A driver's version, without who built it where."""
    return _BUILDER.sub("", text)


def own_status(text: str) -> str:
    """Which processors and NUMA nodes the collector may use."""
    return "\n".join(line for line in text.split("\n") if line.startswith(_STATUS))


def memory(text: str) -> str:
    """Size of the memory and huge pages."""
    return "\n".join(line for line in text.split("\n") if line.startswith(_MEMINFO))


def cpuinfo(text: str) -> str:
    """Of each processor its number, socket, maker and model; of its flags whether a hypervisor is below."""
    kept = []
    for line in text.split("\n"):
        key, _, value = line.partition(":")
        if key.strip().lower() == "flags":
            kept.append("flags\t\t: hypervisor" if "hypervisor" in value.split() else "flags\t\t: " + LEFT_OUT)
        elif not line or key.strip().lower() in _CPUINFO:
            kept.append(line)
    return "\n".join(kept)


def modules(text: str) -> str:
    """Name, size and use count of each module, without its address."""
    return "\n".join(" ".join(line.split(" ")[:3]) for line in text.split("\n"))


def cgroup(text: str) -> str:
    """The words by which container runtimes are known; names and ids of containers, pods, jobs and users are `ID`."""
    lines = []
    for line in text.split("\n"):
        head, colon, path = line.rpartition(":")
        parts = [_cgroup_part(part) for part in path.split("/")]
        lines.append(head + colon + "/".join(parts) if colon else "")
    return "\n".join(lines)


def _cgroup_part(part: str) -> str:
    if part in _CGROUP_PLAIN:
        return part
    return next((shown for mark, shown in _CGROUP_MARKS if mark in part), "ID")


def asset_tag(text: str) -> str:
    """The tag where it names a cloud; else it is one machine's own."""
    return text if text.startswith(CLOUD_TAGS) else ""


CLOUD_TAGS = ("7783-7084-3265-9085-8269-3286-77", "Amazon EC2", "OracleCloud.com", "HUAWEICLOUD", "No Asset")
"""Asset tags by which clouds tell themselves apart; they are the same on every machine there."""


def program(text: str) -> str:
    """The name of the program that a process calls itself: no path, no arguments, no title after a colon."""
    if text.strip() in _SAID_OF_PROCESS:
        return text.strip()
    words = text.split()
    found = _PROGRAM.match(words[0].rsplit("/", 1)[-1]) if words else None
    name = found.group(0) if found else ""
    return GONE if holds_secret(name) else name


def lspci(text: str) -> str:
    """Without vital product data (serial numbers, addresses, notes of the maker and of the owner) and board labels."""
    kept: List[str] = []
    vital = False
    for line in text.split("\n"):
        if _VITAL.match(line):
            vital = True
            kept.append(line)
            continue
        vital = vital and line.startswith("\t\t")
        if not vital and not _LSPCI_LEFT.match(line):
            kept.append(line)
    return "\n".join(kept)


def smi_xml(text: str) -> str:
    """`nvidia-smi -q -x` with programs for processes, and without serial numbers."""
    text = _PROCESS_NAME.sub(lambda found: found.group(1) + program(found.group(2)) + found.group(3), text)
    return _SERIALS.sub(lambda found: found.group(1) + "N/A" + found.group(3), text)


def amd_static(text: str) -> str:
    """`amd-smi static --json` without serial numbers."""
    return _ASIC_SERIAL.sub(lambda found: found.group(1) + "N/A" + found.group(2), text)


def conf(text: str, devices: Iterable[str] = ()) -> str:
    """An nccl.conf: each line as it is, but for comments, names that are not kept, and values of another form."""
    known = list(devices)
    return "\n".join(_conf_line(line, known) for line in text.split("\n"))


def _conf_line(line: str, devices: List[str]) -> str:
    if not line.strip():
        return line[:200]
    found = _CONF.match(line)
    if line.startswith("#") or found is None:
        if line.lstrip().startswith("#"):
            return line[: len(line) - len(line.lstrip())][:200] + "# " + LEFT_OUT
        return _spaced(line, devices) or LEFT_OUT
    if not wanted(found.group(3)):
        return "%s=<replaced: not a variable that is kept>" % found.group(3)
    comment = _CONF_COMMENT.search(found.group(5))
    whole = found.group(5)[: comment.start()] if comment is not None else found.group(5)
    value = whole.strip()
    first = value[:1] if value[:1] in ("'", '"') else ""
    last = value[-1:] if len(value) > 1 and value[-1:] in ("'", '"') else ""
    shown = first + kept_value(found.group(3), value[len(first) : len(value) - len(last)], devices) + last
    before = "".join(found.group(number) or "" for number in (1, 2, 3, 4))
    after = " " if whole != whole.rstrip() else ""
    return before + shown + (" # " + LEFT_OUT if comment is not None else after)


def _spaced(line: str, devices: List[str]) -> Optional[str]:
    """`NCCL_DEBUG INFO`: NCCL skips the line, which is what a check is to find."""
    found = _CONF_SPACED.match(line)
    if found is None or not wanted(found.group(2)) or "<" in kept_value(found.group(2), found.group(4), devices):
        return None
    return line


def topo_xml(text: str) -> str:
    """A topology file: elements and attributes as they are, without comments and text, which NCCL does not read."""
    text = _XML_COMMENT.sub(lambda found: "<!-- -->" + "\n" * found.group(0).count("\n"), text)
    text = _XML_BETWEEN.sub(lambda found: found.group(1) + "\n" * found.group(2).count("\n"), text)
    return _XML_ATTRIBUTE.sub(_attribute, text)


def _attribute(found: "Match[str]") -> str:
    quoted = found.group(4)
    value = quoted[1:-1]
    if _XML_NUMBERS.match(value):
        return found.group(0)
    if _XML_VALUE.match(value) and not holds_secret("%s=%s" % (found.group(2), value)) and not holds_secret(value):
        return found.group(0)
    return "".join(found.group(number) for number in (1, 2, 3)) + quoted[0] + LEFT_OUT + quoted[0]


_TROUBLE = re.compile(
    r"(?i)error|fail|warn|fatal|critical|abort|timeout|timed out|not |unable|invalid|lost|down|version|state"
)


def service_log(text: str) -> str:
    """The lines of a service's log about trouble, versions and states."""
    return "".join(line for line in text.splitlines(keepends=True) if _TROUBLE.search(line))


_COMPLAINT = re.compile(
    r"(?i)\bno\b|error|fail|denied|permission|insufficient|cannot|could not|not |unable|invalid|usage|root|timed? ?out"
)
STDERR_LINES, STDERR_LINE = 8, 200


def complaints(text: str) -> str:
    """Of a command's standard error the first lines that complain."""
    lines = [line.strip()[:STDERR_LINE] for line in text.split("\n") if _COMPLAINT.search(line)]
    return "\n".join(lines[:STDERR_LINES])


_ADDRESS = re.compile(r"[A-Za-z0-9.:_%-]{1,253}\Z")


def addresses(text: str) -> str:
    """The nodes of a list, one on each line, without comments."""
    return "".join(line.strip() + "\n" for line in text.split("\n") if _ADDRESS.match(line.strip()))


_LOCAL = re.compile(r"^[ |+-]*\|-- ([0-9.]{7,15})\n {0,64}/32 host LOCAL$", re.MULTILINE)
_LOCAL6 = re.compile(r"^([0-9a-f]{32}) [0-9a-f]{2} [0-9a-f]{2} 00 [0-9a-f]{2} +\S{1,15}$", re.MULTILINE)
MOST_ADDRESSES = 256
"""Addresses kept of a node: a load balancer has thousands."""


def local_addresses(text: str) -> str:
    """Of the kernel's table of routes (net/ipv4/fib_trie.c) the addresses that are the node's own, without loopback."""
    found = [address for address in _LOCAL.findall(text) if not address.startswith("127.")]
    kept = sorted(set(found), key=found.index)[:MOST_ADDRESSES]
    return "\n".join("|-- %s /32 host LOCAL" % address for address in kept)


def local_addresses6(text: str) -> str:
    """Of the IPv6 addresses of interfaces (net/ipv6/addrconf.c) those of global scope."""
    return "\n".join(match.group(0) for match in list(_LOCAL6.finditer(text))[:MOST_ADDRESSES])
