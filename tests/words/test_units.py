"""Quantities are spelt in one place: the same fault reads the same in every command."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import topodiag
from tests.tables import examples
from topodiag.model.cpulist import parse_cpulist
from topodiag.words.units import (
    few,
    fold_hosts,
    fold_labels,
    fold_numbers,
    fold_runs,
    in_gbps,
    in_gbs,
    in_mhz,
    in_ms,
    in_s,
    in_us,
    in_w,
    number,
    numbered,
    percent,
    plural,
    runs,
    short_hosts,
    signed_s,
    spell_bytes,
    spell_gbs,
    spell_s,
    spell_time,
    spell_us,
)  # fmt: skip

UNIT = re.compile(
    r"\s?(?:GB/s|Gb/s|[KMG]iB|GT/s|MHz)(?![A-Za-z])| (?:%|us|µs|ms|s|min|h|days?|W|°C)(?![A-Za-z0-9_/(.=])"
)
"""The units that sentences share. Where a unit follows a value in one f-string, it was spelt by hand."""


_PERHAPS = re.compile(rf"%}}|}}(?:[\"']\s*f?[\"'])?(?:{UNIT.pattern})")


def by_hand(source: str) -> Iterator[tuple[int, str]]:
    """Line and unit of each value that an f-string of the source follows with a unit."""
    if _PERHAPS.search(source) is None:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            for value in node.values:
                form = value.format_spec if isinstance(value, ast.FormattedValue) else None
                if form is not None and ast.unparse(form).rstrip("'\"").endswith("%"):
                    yield node.lineno, " %"
            for value, text in zip(node.values, node.values[1:], strict=False):
                content = str(text.value) if isinstance(text, ast.Constant) else ""
                if isinstance(value, ast.FormattedValue) and (match := UNIT.match(content)):
                    yield node.lineno, match[0]


def test_a_unit_behind_a_value_is_found() -> None:
    assert list(by_hand('f"{x:.1f} GB/s"')) == [(1, " GB/s")]
    assert list(by_hand('f"{x} GB/s and {y}MiB"')) == [(1, " GB/s"), (1, "MiB")]
    assert list(by_hand('f"{x:.0%} of {y} %"')) == [(1, " %"), (1, " %")]
    assert list(by_hand('f"in GB/s: {x}"')) == []
    assert list(by_hand('f"{x} GB/sec"')) == []
    assert list(by_hand('f"{x:.3g} ms, {y} W of {z} MHz"')) == [(1, " ms"), (1, " W"), (1, " MHz")]
    assert list(by_hand('f"{n} seconds, {x} s={y}"')) == []


def test_no_other_module_spells_a_quantity() -> None:
    code = Path(topodiag.__file__).parent
    homes = {code / "words" / "units.py", code / "nccl" / "topo" / "detect.py"}  # the latter: the kernel's link speeds
    texts = [
        f"{path.relative_to(code)}:{line} spells{unit} by hand: words/units.py has it"
        for path in sorted(code.rglob("*.py"))
        if path not in homes
        for line, unit in by_hand(path.read_text(encoding="utf-8"))
    ]
    assert texts == []


@examples("gbs", "text")
def test_a_bandwidth_has_what_matters(gbs: float, text: str) -> None:
    assert in_gbs(gbs) == text
    assert f"{spell_gbs(gbs)} GB/s" == text


def test_a_derivation_keeps_its_digits() -> None:
    assert in_gbs(20.6250, exact=True) == "20.625 GB/s"


@examples("share", "text")
def test_a_share_has_a_decimal_where_a_whole_number_says_too_little(share: float, text: str) -> None:
    assert percent(share) == text


def test_a_change_has_its_sign() -> None:
    assert [percent(share, signed=True) for share in (0.07, -0.07, 0.0, -0.0001)] == ["+7 %", "-7 %", "0 %", "0 %"]


def test_line_rates_sizes_and_times() -> None:
    assert [in_gbps(rate) for rate in (400, 12.5, 0.155)] == ["400 Gb/s", "12.5 Gb/s", "0.155 Gb/s"]
    assert [spell_bytes(count) for count in (8, 64 << 10, 3 << 29)] == ["8 B", "64 KiB", "1.5 GiB"]
    assert [spell_us(time) for time in (12.34, 4560.0, 1.2e6)] == ["12.3 us", "4.56 ms", "1.2 s"]


@examples("value", "text")
def test_numbers_have_no_more_digits_than_they_mean(value: float, text: str) -> None:
    assert number(value) == text


@examples("seconds", "text")
def test_a_time_has_the_units_of_its_length(seconds: float, text: str) -> None:
    assert spell_s(seconds) == text


def test_a_limit_keeps_its_seconds_and_a_clock_its_sign() -> None:
    assert [in_s(seconds) for seconds in (600, 0.5, 1800.0)] == ["600 s", "0.5 s", "1800 s"]
    assert [signed_s(seconds) for seconds in (0, 245, -0.012)] == ["+0 s", "+4 min 5 s", "-12 ms"]


def test_parts_of_a_step_line_up() -> None:
    assert [in_ms(time) for time in (12_340.0, 1_234_560.0)] == ["12.3 ms", "1,234.6 ms"]
    assert in_us(2234.56) == "2234.6 us"
    assert [spell_time(time) for time in (12.34, 6280.0, 1.32e6)] == ["12.34 us", "6.28 ms", "1.32 s"]


def test_clocks_and_power() -> None:
    assert (in_mhz(1980), in_w(402.4)) == ("1980 MHz", "402 W")


# --- many names and numbers in few words, and back ------------------------------------------------------------


def test_a_long_set_of_hosts_is_cut_behind_a_whole_name() -> None:
    texts = [f"gpu-{number:03d}" for number in range(1, 200, 7)]
    assert short_hosts(texts, 30) == "gpu-[001,008,015,022,029,…]"
    assert short_hosts(texts, 400) == fold_hosts(texts)
    assert short_hosts(["a.one", "b.two", "c.three"], 14) == "a.one,b.two, …"


def test_one_is_singular_and_all_else_plural() -> None:
    assert [plural(count, "link") for count in (0, 1, 2)] == ["0 links", "1 link", "2 links"]
    assert plural(2, "switch", "switches") == "2 switches"


def test_the_first_few_are_named_and_the_rest_is_counted() -> None:
    assert few(["a", "b"], 2) == "a, b"
    assert few(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert few(["a", "b", "c"], 2, "; ") == "a; b; and 1 more"


def test_neighbours_are_folded() -> None:
    assert fold_numbers([8, 0, 1, 2, 2]) == "0-2,8"
    assert fold_runs(["GPU0", "GPU1", "GPU2", "GPU5", "mlx5_0"]) == "GPU0-2, GPU5, mlx5_0"
    assert fold_labels(["GPU0", "mlx5_0", "GPU1", "GPU5"]) == "GPU0-1,5, mlx5_0"
    assert fold_labels([f"eth{n}x" for n in range(13)], most=2) == "eth0x, eth1x … (13 in all)"


def test_hosts_are_a_node_set_only_where_they_are_names() -> None:
    assert fold_hosts(["gpu-001", "gpu-002", "gpu-002"]) == "gpu-[001-002]"
    assert fold_hosts(["n_1", "n_2"]) == "n_[1-2]"
    assert fold_hosts(["a[1", "a]2"]) == "a[1, a]2"
    assert fold_hosts(["a[", "b@"]) == "a[, b@"
    assert fold_hosts([]) == ""


@given(st.sets(st.integers(0, 4000), max_size=60))
def test_folded_numbers_are_read_back_as_they_were(numbers: set[int]) -> None:
    assert parse_cpulist(fold_numbers(numbers)) == numbers
    assert {number for low, high in runs(numbers) for number in range(low, high + 1)} == numbers


@given(st.lists(st.text(max_size=12), max_size=20))
def test_any_labels_can_be_folded(labels: list[str]) -> None:
    assert isinstance(fold_labels(labels), str)
    assert isinstance(fold_runs(labels), str)
    assert isinstance(fold_hosts(labels), str)


def test_numbers_of_one_noun_are_folded_behind_it() -> None:
    assert numbered("link", [3]) == numbered("link", [3, 3]) == "link 3"
    assert numbered("link", (5, 3, 4, 8)) == "links 3-5,8"


def test_no_other_module_forms_a_plural() -> None:
    code = Path(topodiag.__file__).parent
    by_hand = re.compile(r"\{'(?:s|es|ies)?' if [^\n{}]{1,60} else '(?:s|es|ies)?'\}")
    for path in code.rglob("*.py"):
        if path != code / "words" / "units.py":
            assert by_hand.search(path.read_text(encoding="utf-8")) is None, path
