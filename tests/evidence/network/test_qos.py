"""`mlnx_qos` and `dcb pfc`: flow control by priority."""

from __future__ import annotations

from tests.evidence.filled import node_of
from tests.tables import texts
from topodiag.evidence.network.qos import UNNAMED

TEXTS = texts(__file__)
TEXT = TEXTS["text"]


def test_mlnx_qos_says_trust_flow_control_and_the_table_of_dscp() -> None:
    (device,) = node_of(TEXT).netdevs
    assert (device.name, device.trust.value, device.lossless.value) == ("ens1f0", "dscp", (3,))
    assert device.priority_of.value is not None
    assert {"0:0", "26:3"} <= set(device.priority_of.value)


def test_no_priority_with_flow_control_is_an_answer_and_not_the_want_of_one() -> None:
    (device,) = node_of("PFC configuration:\n  enabled  0 0 0 0 0 0 0 0\n").netdevs
    assert (device.name, device.lossless.value) == (UNNAMED, ())


def test_dcb_says_it_in_its_own_words() -> None:
    text = (
        "$ dcb pfc show dev eth2\npfc-cap 8 macsec-bypass off delay 0\n"
        "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:on 6:off 7:off\n"
    )
    (device,) = node_of(text).netdevs
    assert (device.name, device.lossless.value) == ("eth2", (3, 5))


def test_two_interfaces_of_one_paste_are_told_apart() -> None:
    node = node_of(TEXT + TEXT.replace("ens1f0", "ens1f1").replace("0   0   0   1", "0   0   0   0"))
    assert {device.name: device.lossless.value for device in node.netdevs} == {"ens1f0": (3,), "ens1f1": ()}
