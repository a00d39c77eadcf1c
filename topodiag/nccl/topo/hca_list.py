"""NCCL_IB_HCA: which ports NCCL takes, and the rail and plane that the list gives them.

SOURCE: NCCL src/misc/utils.cc (parseStringList, matchIfList) and src/transport/net_ib/init.cc.
"""

from __future__ import annotations

from topodiag.lazy import dataclass
from topodiag.nccl.numbers import c_int


@dataclass(frozen=True, slots=True)
class HcaFilter:
    """NCCL_IB_HCA or NCCL_SOCKET_IFNAME: a list of prefixes, `=` for whole names, `^` for all but these, each with an
    optional `:port`, and from 2.30 on `:port:rail:plane`, of which any may be empty."""

    text: str

    def takes(self, name: str, port: int) -> bool:
        text = self.text.strip()
        return not text or (self._item(name, port) is not None) != text.startswith("^")

    def place(self, name: str, port: int) -> dict[str, str]:
        """`rail` and `plane` that the list gives a port, without those that it leaves open."""
        place = None if self.text.strip().startswith("^") else self._item(name, port)
        values = (place or "").split(":")[2:4]
        return {key: str(c_int(value)) for key, value in zip(("rail", "plane"), values, strict=False) if value}

    def _item(self, name: str, port: int) -> str | None:
        """The first item of the list that means this port."""
        text = self.text.strip().removeprefix("^")
        exact = text.startswith("=")
        for item in text.removeprefix("=").split(","):
            wanted, _, rest = item.strip().partition(":")
            matches = name == wanted if exact else name.startswith(wanted)
            if item.strip() and matches and rest.split(":")[0] in ("", str(port)):
                return item.strip()
        return None
