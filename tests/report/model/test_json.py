"""The JSON of `topodiag model` is of the published schema, whatever is asked."""

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from msgspec import Struct

from tests.tables import examples
from tests.valid import assert_valid
from topodiag.app.case.system import machine_of
from topodiag.cost.collectives import Link
from topodiag.cost.questions import ask_links, price_hierarchy, price_placements, read_measured
from topodiag.cost.step import Work, price_step
from topodiag.cost.tiers import machine_of_links
from topodiag.model.layout import Layout
from topodiag.report.documents.from_model import plain
from topodiag.report.model.collective import hierarchy_json, links_json, placements_json
from topodiag.report.model.step import step_json

SCHEMA = json.loads((files("topodiag.report") / "schema" / "model-1.0.schema.json").read_text())
NODES = machine_of("dgx-h100", 4)
LINKS = machine_of_links(Link(0.0, 300.0, "inside"), Link(0.0, 12.5, "network"), 8, 4)
WORK = Work(70e9, 80, 8192, 4096, 1, 64, 989.4)


def valid(made: Struct | dict[str, Any]) -> None:
    printed = made if isinstance(made, dict) else plain(made)
    assert_valid(json.loads(json.dumps(printed, allow_nan=False)), SCHEMA)


@pytest.mark.parametrize("machine", [NODES, LINKS], ids=["a system", "links without latency"])
def test_links_and_hierarchies_are_valid(machine: Any) -> None:
    valid(links_json(ask_links(1e6, machine=machine), 10**6, (1, 1 << 20), {"size": 10**6}))
    for nodes, per_node in ((4, 8), (1, 8), (4, 1)):
        valid(hierarchy_json(price_hierarchy(machine, nodes, per_node), machine, 1 << 20, (1, 1 << 20), {}))


@pytest.mark.parametrize("placements", [((1, 8), (8, 1)), ((1, 1), (1, 1)), ((4, 8),)])
def test_collectives_are_valid_with_and_without_a_measured_time(placements: tuple[tuple[int, int], ...]) -> None:
    made = price_placements(NODES, "all_reduce", 1e6, placements)
    valid(placements_json(made, NODES, None, {}))
    for measured in (0.001, 50.0, 1e9):
        valid(placements_json(made, NODES, read_measured(made, measured), {}))


@examples("layout", "changes")
def test_steps_are_valid(layout: Layout, changes: dict[str, Any]) -> None:
    valid(step_json(price_step(replace(WORK, **changes), layout, NODES), ("assumed",), {}))


def test_a_step_of_one_gpu_sends_nothing() -> None:
    machine = machine_of_links(Link(1.0, 300.0, "inside"), None, 1, 1)
    document = plain(step_json(price_step(WORK, Layout(), machine), (), {}))
    valid(document)
    assert (document["dimensions"], document["busbw_gbs"]) == ([], None)


def test_the_schema_notices_a_term_without_its_formula() -> None:
    document = plain(hierarchy_json(price_hierarchy(NODES, 4, 8), NODES, 1 << 20, (1 << 20,), {}))
    del document["terms"][0]["formula"]
    with pytest.raises(jsonschema.ValidationError):
        valid(document)
