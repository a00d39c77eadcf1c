"""One sample of a node's links and error counters, read from sysfs. Traffic is not sampled: it always changes."""

from typing import Dict, List, Tuple, Union

from topodiag_probes.items.infiniband import CLASS as RDMA
from topodiag_probes.items.net import CLASS as NET
from topodiag_probes.tree import Root

Value = Union[str, int]
Values = Dict[Tuple[str, str], Value]
"""Values by part and key: `("mlx5_0/1", "state")`, `("0000:1a:00.0", "width")`, `("gpu3/link6", "replay")`."""

MAX_VALUES = 20000
"""Values of one sample; a node with 16 GPUs and 32 ports has some 2,000."""
MAX_CHARS = 120
PCI = "sys/bus/pci/devices"
_PORT_COUNTERS = (
    "counters/link_downed",
    "counters/link_error_recovery",
    "counters/symbol_error",
    "counters/port_rcv_errors",
    "counters/local_link_integrity_errors",
    "counters/excessive_buffer_overrun_errors",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/out_of_sequence",
)
_NET_COUNTERS = ("carrier_changes", "carrier_down_count")
_NET_STATISTICS = ("rx_crc_errors", "rx_errors", "tx_errors")
_IFF_UP = 0x1
"""net_device_flags of linux/if.h: switched on by the administrator."""
_WATCHED = ("0x02", "0x03", "0x12")
"""Base classes of PCI functions: network, display, accelerator."""
_GPU = ("0x03", "0x12")


def sample(root: Root) -> Values:
    """What sysfs says now; what cannot be read is left out."""
    values: Values = {}
    _ports(root, values)
    _interfaces(root, values)
    _functions(root, values)
    return values


def _put(values: Values, part: str, key: str, value: Value) -> None:
    if value != "" and len(values) < MAX_VALUES:
        values[part, key] = value


def _count(values: Values, part: str, key: str, text: str) -> None:
    if text.isdigit() and len(text) <= 20:
        _put(values, part, key, int(text))


def _word(text: str) -> str:
    """`4: ACTIVE` without the number."""
    return text.partition(":")[2].strip()[:MAX_CHARS]


def _ports(root: Root, values: Values) -> None:
    for device in root.names(RDMA):
        for number in root.names("%s/%s/ports" % (RDMA, device)):
            part = "%s/%s" % (device, number)
            folder = "%s/%s/ports/%s" % (RDMA, device, number)
            _put(values, part, "state", _word(root.text(folder + "/state")))
            _put(values, part, "phys_state", _word(root.text(folder + "/phys_state")))
            _put(values, part, "rate", root.text(folder + "/rate")[:MAX_CHARS])
            for name in _PORT_COUNTERS:
                _count(values, part, name.partition("/")[2], root.text("%s/%s" % (folder, name)))


def _interfaces(root: Root, values: Values) -> None:
    for name in root.names(NET):
        folder = "%s/%s" % (NET, name)
        if not root.exists(folder + "/device"):
            continue  # bridges, tunnels and what containers have: none of them is a wire
        flags = root.text(folder + "/flags")
        carrier = root.text(folder + "/carrier")
        if _is_off(flags):
            _put(values, name, "state", "off")
        elif carrier in ("0", "1"):
            _put(values, name, "state", "up" if carrier == "1" else "down")
            _count(values, name, "speed", root.text(folder + "/speed"))
        for key in _NET_COUNTERS:
            _count(values, name, key, root.text("%s/%s" % (folder, key)))
        for key in _NET_STATISTICS:
            _count(values, name, key, root.text("%s/statistics/%s" % (folder, key)))


def _is_off(flags: str) -> bool:
    try:
        return not int(flags[:18], 16) & _IFF_UP
    except ValueError:
        return False


def _functions(root: Root, values: Values) -> None:
    """Lanes and generation of GPUs and NICs. An idle GPU lowers its generation: of a GPU the lanes alone count."""
    for address in root.names(PCI):
        folder = "%s/%s" % (PCI, address)
        base = root.text(folder + "/class")[:4]
        if base not in _WATCHED:
            continue
        _put(values, address, "present", "yes")
        _count(values, address, "width", root.text(folder + "/current_link_width"))
        if base not in _GPU:
            _put(values, address, "speed", root.text(folder + "/current_link_speed")[:MAX_CHARS])
        _errors(root, values, address, folder)


def _errors(root: Root, values: Values, address: str, folder: str) -> None:
    """Totals of Advanced Error Reporting: the last line of each file is `TOTAL_ERR_COR 12`."""
    for name in ("aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"):
        lines: List[str] = root.text("%s/%s" % (folder, name)).split("\n")
        _count(values, address, name, lines[-1].rpartition(" ")[2])
