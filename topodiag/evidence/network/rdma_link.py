"""`rdma link show` and `rdma statistic show` of iproute2: state, interface and counters of each RDMA port.

    link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0
    link mlx5_0/1 rx_write_requests 12 out_of_sequence 41002 local_ack_timeout_err 2705

Older releases number the lines (`1/1: mlx5_0/1: state ...`), newer begin with `link`. The kernel says subnet and LID
of InfiniBand ports only (drivers/infiniband/core/nldev.c, fill_port_info), which tells the link layer.
"""

from __future__ import annotations

from topodiag.evidence.interface import to_int
from topodiag.evidence.json_values import line_of, load, objects, opens_list
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.page import Line, OfPage, Page

_NO_COUNTERS = {"ifindex", "port", "lmc", "subnet_prefix", "netdev_index"}
_MAX_PORTS = 4096


class RdmaLink(OfPage):
    """Ports from `rdma link show`, and their counters from `rdma statistic show`, with or without `-j`."""

    def read_page(self, page: Page) -> None:
        # Counters alone do not say which devices there are.
        page.parsed.partial = "state" not in page.blob.text
        if opens_list(page.blob.text):
            document, why = load(page.blob)
            if why:
                page.parsed.leave(page.blob, 1, page.blob.text[:80], why)
            for _, entry in objects(document, _MAX_PORTS):
                pairs = {key: str(cell)[:80] for key, cell in entry.items() if isinstance(cell, str | int)}
                quote = " ".join(f"{key} {cell}" for key, cell in list(pairs.items())[:12])
                name = pairs.get("ifname", "")
                _port(Line(page, line_of(page.blob.text, name), quote), name, pairs.get("port", ""), pairs)
            return
        for line in page.lines():
            text = line.bare
            first, place, *pieces = *text.split(), "", ""
            device, slash, number = place.rstrip(":").partition("/")
            if slash and (first == "link" or (first.endswith(":") and first[:1].isdecimal())):
                _port(line, device, number, dict(zip(pieces[::2], pieces[1::2], strict=False)))
            elif text and not text.startswith(("#", "$", "caps:")):
                line.leave("not a line of rdma link")


def _port(line: Line, device: str, place: str, pairs: dict[str, str]) -> None:
    name, number = words.device_name(device), to_int(place, low=0, high=words.MAX_PORT)
    if name is None or number is None:
        line.leave("not a device and its port")
        return
    port = line.page.draft.nic(rdma=name).child("port", number)
    line.page.begin()
    for key, cell in pairs.items():
        if key in words.PORT_KEYS:
            words.offer_cell(line, port, words.PORT_KEYS[key], cell)
        elif key not in _NO_COUNTERS and (count := to_int(cell, low=0)) is not None:
            line.count(port, key, count)
    if "subnet_prefix" in pairs or "lid" in pairs:
        line.offer(port, "link_layer", "InfiniBand")
    elif "netdev" in pairs:
        line.offer(port, "link_layer", "Ethernet")
