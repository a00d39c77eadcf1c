"""Fleets drawn: nodes by parts with equal rows folded, classes with their odd ones, outliers named."""

from tests.draw.shown import texts
from topodiag.draw.fleet import draw_classes, draw_parts, draw_strips
from topodiag.model.finding import Finding, Severity, Where
from topodiag.model.fleet import Cohort, Exclusion, FleetNode, FleetResult, How, Outlier

NODES = [f"n{number:05d}" for number in range(10_000)]


def finding(check: str, nodes: tuple[str, ...], gpus: tuple[str, ...] = (), nics: tuple[str, ...] = (),
            severity: Severity = Severity.ERROR) -> Finding:  # fmt: skip
    return Finding(check, severity, "m", "o", "e", (), Where(nodes, gpus, nics))


def test_each_faulty_part_is_a_cell_with_its_letter_and_the_checks() -> None:
    nic = finding("NIC002", ("n00001",), (), ("mlx5_4",), Severity.WARNING)
    svg = draw_parts(NODES[:4], [finding("NVL001", ("n00001",), ("GPU3",)), nic])
    shown = texts(svg)
    assert shown[2:4] == ["GPU3", "mlx5_4"]
    assert {"E", "W", "NVL001, NIC002"} <= set(shown)
    assert "<title>GPU3: NVL001</title>" in svg
    assert "1 of 4 nodes with findings" in shown


def test_nodes_alike_are_one_row_and_those_without_a_finding_the_last() -> None:
    svg = draw_parts(NODES, [finding("HST003", tuple(NODES[10:73])), finding("NVL001", ("n00500",), ("GPU0",))])
    shown = texts(svg)
    assert "x 63" in shown
    assert "x 9936" in shown
    assert shown.index("x 63") < shown.index("x 9936")
    assert len(svg) < 12_000


def test_a_fault_of_the_whole_node_has_its_cell_however_many_parts_there_are() -> None:
    nics = tuple(f"mlx5_{number}" for number in range(20))
    shown = texts(draw_parts(NODES[:3], [finding("NET001", ("n00000",), (), nics), finding("HST001", ("n00001",))]))
    assert "node" in shown
    assert shown.count("E") == 16, "fifteen parts, and the node as a whole"
    assert any(text.endswith("; 5 more parts not drawn") for text in shown)


def test_one_node_and_a_healthy_fleet_have_no_heat_map() -> None:
    assert draw_parts(NODES[:1], [finding("NVL001", ("n00000",))]) == ""
    assert draw_parts(NODES, []) == ""


def fleet(*outliers: Outlier) -> FleetResult:
    nodes = tuple(FleetNode(host, host) for host in NODES[:200])
    cohort = Cohort("DGX H100", (), tuple(NODES[:200]), outliers=outliers)
    return FleetResult(nodes, (cohort,), exclusions=(Exclusion(("n00007",), (("NVL001", "m"),), Severity.ERROR),))


SLOW = Outlier("pci", "replay counter", ("gpu3",), "950", "2", ("n00009",), 199, 200, How.FAR, "per hour", 80.0)
OLD = Outlier("firmware", "VBIOS", ("gpu0",), "96.00", "96.00.5", ("n00011",), 199, 200)


def test_a_class_says_how_many_are_odd_and_how_many_to_exclude() -> None:
    assert "200 nodes, 1 odd, 1 to exclude" in texts(draw_classes(fleet(SLOW)))


def test_an_outlier_is_named_beside_the_usual_value() -> None:
    shown = texts(draw_strips(fleet(SLOW, OLD)))
    assert "n00009: 950" in shown
    assert "2 per hour, 199 of 200" in shown
    assert not any("n00011" in text for text in shown), "a version is no number"


def test_without_numbers_that_stand_out_there_is_no_strip() -> None:
    assert draw_strips(fleet(OLD)) == ""
    assert draw_classes(FleetResult((), ())) == ""


def test_a_limit_that_is_unlimited_is_no_number_and_bytes_are_spelt() -> None:
    locked = Outlier("limits", "locked memory", ("",), "65536", "unlimited", ("n00003",), 199, 200, unit="bytes")
    shared = Outlier("limits", "shared memory", ("",), "270456016896", "1081824067584", ("n00004",), 199, 200,
                     How.FAR, "bytes")  # fmt: skip
    shown = texts(draw_strips(fleet(locked, shared)))
    assert not any("n00003" in text for text in shown)
    assert "n00004: 251.9 GiB" in shown
