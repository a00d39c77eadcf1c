"""Sizes, counts, times, links and placements as people type them."""

from contextlib import suppress

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.cli.model.link import link
from topodiag.cli.params import TYPES, link_type
from topodiag.cost.alpha_beta import Link

ALL = (*(TYPES[name] for name in ("size", "sizes", "number", "micros", "nics")), link_type())


@examples("text", "size")
def test_a_letter_is_a_power_of_two_as_in_nccl_tests_and_mb_one_of_ten(text: str, size: int) -> None:
    assert TYPES["size"].convert(text, None, None) == size


def test_a_range_holds_both_ends() -> None:
    assert TYPES["sizes"].convert("1K:8K", None, None) == (1024, 2048, 4096, 8192)


@pytest.mark.parametrize(("text", "count"), [("70e9", 70e9), ("70B", 70e9), ("7.5M", 7.5e6), ("1.8T", 1.8e12)])
def test_counts_of_parameters(text: str, count: float) -> None:
    assert TYPES["number"].convert(text, None, None) == count


@pytest.mark.parametrize(("text", "us"), [("150ms", 150_000.0), ("42us", 42.0), ("1.2 s", 1.2e6)])
def test_times(text: str, us: float) -> None:
    assert TYPES["micros"].convert(text, None, None) == us


def test_a_link_with_and_without_a_name() -> None:
    assert link_type().convert("InfiniBand NDR=3.0,50", None, None) == Link(3.0, 50.0, "InfiniBand NDR")
    assert link_type("inside").convert("1,300", None, None) == Link(1.0, 300.0, "inside")


def test_the_shell_completes_the_names_of_systems() -> None:
    option = next(param for param in link.params if param.name == "system")
    found = [item.value for item in option.shell_complete(click.Context(link), "DGX-h")]
    assert found == ["dgx-h100", "dgx-h200"]


@given(
    st.sampled_from(ALL),
    st.one_of(st.text(max_size=30), st.from_regex(r"[0-9.eE+xKMGTiB:,=mus]{1,20}", fullmatch=True)),
)
def test_any_text_is_a_value_or_a_usage_error(kind: click.ParamType, text: str) -> None:
    with suppress(click.BadParameter):
        assert kind.convert(text, None, None) is not None
