"""No machine with holes, counters, settings and neighbours makes a check of NICs, PCIe or settings raise."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.checks import networks as network
from tests.checks.nodes import read
from tests.checks.test_every_check import holed
from tests.checks.wanted import assert_complete
from topodiag.checks import registry
from topodiag.checks.interface import NodeCheck
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.system import ConfLine, Setting

CHECKS = [cls for check_id in registry.ids() if check_id[:3] in ("NIC", "PCI", "ENV")
          and (cls := registry.check_class(check_id)) is not None]  # fmt: skip
VALUES = ("0", "1", "", "LOC", "mlx5_0", "^=,", "lo", "Ring", "9" * 40)
NAMES = ("NCCL_IB_HCA", "NCCL_IB_DISABLE", "NCCL_NET_GDR_LEVEL", "NCCL_ALGO", "NCCL_SOCKET_IFNAME", "NCCL_ODD")


def machine(dice: Random) -> Node:
    """A machine with some of its facts lost, two samples of its counters, settings and a conf file."""
    node = dice.choice([network.ib_h100, network.roce_h100, network.efa_vm])()
    grown = [network.counter(name, dice.randrange(9), dice.choice([None, 0, 70_000])) for name in network.IB_COUNTERS]
    node = network.with_counters(node, dice.choice([None, 0]), *grown)
    for at in range(dice.randrange(3)):
        node = network.with_port(node, at, **network.DOWN)
    scopes = ["environment", "etc/nccl.conf"]
    given_as = [(dice.choice(NAMES), dice.choice(VALUES)) for _ in range(3)]
    origin = Origin("settings.tree", 1, "made")
    node = replace(
        node,
        system=read(dice.choice(["DGX H100", "p5.48xlarge", "a box"])),
        settings=tuple(Setting(name, value, dice.choice(scopes), origin) for name, value in given_as),
        conf_lines=tuple(ConfLine("etc/nccl.conf", 1, f"{name} ={value}", origin) for name, value in given_as),
        nics=node.nics[: dice.choice([0, 1, 7, 8])],
    )  # fmt: skip
    broken: Node = holed(node, dice)
    return broken


@given(seed=st.integers(0, 10**6))
def test_no_machine_makes_a_check_raise_and_every_finding_is_complete(seed: int) -> None:
    dice = Random(seed)
    node, peers = machine(dice), [replace(machine(dice), host=f"gpu-{at}") for at in range(dice.randrange(3))]
    for check in CHECKS:
        assert issubclass(check, NodeCheck)
        outcome = check().judge(node, peers)
        for finding in outcome.findings:
            assert_complete(finding)
            assert finding.cost.text or finding.cost.gbs_lost is not None
            assert finding.cost.gbs_lost is None or finding.cost.gbs_lost >= 0
            assert finding.cost.share is None or 0 <= finding.cost.share <= 1
            assert finding.where.nodes == (node.host,)
        assert outcome.findings or outcome.why or outcome.status.value == "clean"
