"""`mlxlink`: state, rate, counters and the firmware's word on the signal of one port."""

from tests.evidence.filled import node_of, text_of
from topodiag.checks.nic.events import troubles

TEXT = text_of("mlxlink", "TEXT")


def test_errors_that_remain_after_correction_are_those_of_a_poor_signal_above_the_limit() -> None:
    well = TEXT.format(word="No issue was observed.")
    assert not troubles(node_of(well + "Effective Physical BER : 15E-255\nSymbol BER : 1E-13\n"))
    (event,) = troubles(node_of(well + "Effective Physical BER : 8E-09\nSymbol BER : 4E-12\n"))
    assert event.words == (
        "its link is up with a poor signal: Effective Physical BER 8E-09, and 1e-12 is the most of a link that is well"
    )


def test_a_port_that_nobody_names_is_told_where_it_is_the_only_one() -> None:
    text = TEXT.replace("# mlxlink -d mlx5_5 -c\n", "").format(word="Bad signal integrity")
    other = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n"
    assert [nic.name for nic in node_of(text, other).nics] == ["mlx5_0"]
    assert [nic.name for nic in node_of(text + text).nics] == []
