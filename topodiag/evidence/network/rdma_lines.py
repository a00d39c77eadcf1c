"""RDMA ports that tools print one to a line, with their interface, addresses or counters.

`ibdev2netdev` of MLNX_OFED: which interface belongs to which RDMA port, with and without `-v`.

    mlx5_0 port 1 ==> ens1f0np0 (Up)
    0000:18:00.0 mlx5_0 (MT4129 - MCX75310AAS-NEAT) ConnectX-7 ... fw 28.41.1000 port 1 (ACTIVE) ==> ibs1 (Up)

`Up` is the script's word for an operstate of `up`, `Down` for any other. Also as `column -t` widens it.

`show_gids` of MLNX_OFED: the addresses of each RoCE port, with their index, version and interface.

DEV     PORT  INDEX  GID                                      IPv4            VER  DEV
mlx5_0  1     3      0000:0000:0000:0000:0000:ffff:0a9c:8184  10.156.129.132  v2   net1

`rdma link show` and `rdma statistic show` of iproute2: state, interface and counters of each RDMA port.

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
from topodiag.model.busid import normalise_bus_id
from topodiag.words.own_data import patterns

_LIKE = patterns("evidence/network/lines", "ibdev2netdev")


class Ibdev2netdev(OfPage):
    """Interfaces of RDMA ports from `ibdev2netdev`."""

    def read_page(self, page: Page) -> None:
        for line in page.lines():
            if not line.bare or line.bare.startswith(("#", "$")):
                continue
            left, _, right = line.bare.partition("==>")
            match, (target, state, *_) = _LIKE["left"].match(left.rstrip()), (*right.split(), "", "")
            name = words.device_name(match["name"]) if match else None
            interface = words.device_name(target) if state in ("(Up)", "(Down)") else None
            number = to_int(match["port"], high=words.MAX_PORT) if match else None
            if match is None or not name or not interface or number is None:
                line.leave("not a line of ibdev2netdev")
                continue
            bus_id = normalise_bus_id(match["bus"] or "")
            nic, netdev = page.draft.nic(rdma=name, bus_id=bus_id), page.draft.netdev(interface)
            port = nic.child("port", number)
            page.begin()
            line.offer(port, "netdev", interface)
            line.offer(netdev, "operstate", state.strip("()").lower())
            if bus_id is not None:
                line.offer(netdev, "bus_id", bus_id)
            if match["state"]:
                line.offer(port, "state", words.port_state(match["state"]), "not a port state")
            if match["hca"]:
                line.offer(nic, "hca_type", match["hca"])
            rest = match["rest"].split()
            if rest[-2:-1] == ["fw"]:
                line.offer(nic, "firmware", rest[-1][:40])


class ShowGids(OfPage):
    """GID tables of RoCE ports from `show_gids`."""

    def read_page(self, page: Page) -> None:
        for line in page.lines():
            name, place, index, gid, *rest = *line.bare.split(), "", "", "", ""
            number = to_int(place, low=1, high=words.MAX_PORT) if place.isdecimal() and index.isdecimal() else None
            if number is None or ":" not in gid or words.device_name(name) is None:
                continue
            version = next((word for word in rest if word in ("v1", "v2")), "")
            entry = words.gid(int(index[:4]), gid, f"RoCE {version}")
            if entry is None:
                line.leave("not a GID")
                continue
            port = page.draft.nic(rdma=name).child("port", number)
            line.add(port, "gids", entry)
            if version:
                line.offer(port, "link_layer", "Ethernet")
            others = [word for word in rest if word and word != version and word.count(".") != 3]
            if others and words.device_name(others[-1]):
                line.offer(port, "netdev", others[-1])


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
