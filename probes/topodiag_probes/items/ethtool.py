"""ethtool for each interface with a device: link, driver, and the driver's own statistics."""

import re
from typing import List

from topodiag_probes.interface import CommandProbe, Context, Outcome, Probe
from topodiag_probes.items.net import interfaces, with_device

INTERFACES = 64
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,31}\Z")


class Ethtool(Probe):
    """Names the interfaces; captures nothing itself."""

    id = "ethtool-IF"
    kind = "ethtool"
    about = "ethtool IF, ethtool -i IF, ethtool -S IF for each interface with a device"
    needs = "ethtool"
    keeps = ("link, driver, firmware, bus address and counters of each interface with a device",)
    sampled = True

    def more(self, ctx: Context) -> List[Probe]:
        found: List[Probe] = []
        if not ctx.live or ctx.which("ethtool") is None:
            return found
        names = [name for name in interfaces(ctx) if _NAME.match(name) and with_device(ctx, name)]
        for name in names[:INTERFACES]:
            found.append(CommandProbe("ethtool-" + name, "ethtool", ["ethtool", name], keeps=self.keeps))
            found.append(CommandProbe("ethtool-i-" + name, "ethtool-driver", ["ethtool", "-i", name], keeps=self.keeps))
            stats = ["ethtool", "-S", name]
            found.append(CommandProbe("ethtool-S-" + name, "ethtool-stats", stats, sampled=True, keeps=self.keeps))
        return found

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        if not ctx.live:
            out.status, out.why = "skipped", "commands run on the live host only"
        elif ctx.which("ethtool") is None:
            out.status, out.why = "absent", "ethtool is not installed"
        else:
            out.status, out.why = "absent", "no network interface has a device"


def probes() -> List[Probe]:
    return [Ethtool()]
