"""The bits of the fabric's health mask by their meaning."""

from tests.tables import examples
from topodiag.model.links import fabric_bandwidth, fabric_problems


@examples("mask", "bandwidth", "problems")
def test_the_health_mask_is_decoded(mask: int, bandwidth: str | None, problems: str | None) -> None:
    assert (fabric_bandwidth(mask), fabric_problems(mask)) == (bandwidth, problems)
