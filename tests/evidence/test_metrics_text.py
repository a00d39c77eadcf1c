"""Samples of Prometheus' text format, one line each, whatever stands around them."""

from topodiag.evidence.interface import Blob
from topodiag.evidence.metrics_text import labels_of, samples_of, whole


def read(text: str) -> list[tuple[str, dict[str, str], float]]:
    return [(sample.name, dict(sample.labels), sample.value) for sample in samples_of(Blob("m", text.encode()), "x_")]


def test_a_sample_is_a_name_labels_and_a_value() -> None:
    assert read('# HELP x_a words\n# TYPE x_a gauge\nx_a{b="1",c="d e"} 2.5e+10\n  x_b 3 1700000000000\n') == [
        ("x_a", {"b": "1", "c": "d e"}, 2.5e10),
        ("x_b", {}, 3.0),
    ]


def test_a_line_that_is_none_costs_itself() -> None:
    assert read('x_a{b="1"\nx_b{b="1"} word\nx_c{} NaN\nx_d +Inf\ny_e 1\nx_f 4') == [("x_f", {}, 4.0)]


def test_labels_are_the_exporters_own() -> None:
    """A server renames those of which it has its own."""
    assert labels_of('Hostname="pod",exported_Hostname="n1"')["Hostname"] == "n1"
    assert labels_of(r'a="say \"b\" \\ c"') == {"a": r'say "b" \ c'}


def test_a_count_is_whole() -> None:
    assert [whole(value) for value in (3.0, 2.2031403016e10, 1.5, -1.0, 1e300)] == [3, 22031403016, None, None, None]
