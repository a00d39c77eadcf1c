"""Every shipped machine gives a valid JSON, and a table that fits the page and names what was found."""

import json
from importlib.resources import files

import jsonschema
import pytest
from rich.cells import cell_len

from tests.printed import drawn, written
from tests.scanned import scanned
from topodiag.evidence.intake.collected import fixtures
from topodiag.model.gpu_sight import Sight, gpu_sight
from topodiag.report.registry import names, report
from topodiag.report.table import draw_result

SCHEMA = json.loads((files("topodiag.report") / "schema" / "result-1.0.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(SCHEMA)
VALID = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(params=fixtures())
def result(request):
    return scanned(f"fixture:{request.param}")


def rendered(result, name, **style):
    return drawn(draw_result, result, **style) if name == "table" else written(report(name), result, **style)


def test_the_json_is_valid(result):
    VALID.validate(json.loads(rendered(result, "json")))


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_fits_and_names_every_finding(result, width):
    text = rendered(result, "table", width=width, verbose=1)
    assert max(map(cell_len, text.splitlines())) <= width
    for finding in result.findings:
        assert finding.id in text
    assert rendered(result, "table", width=width, ascii=True).isascii()


def test_a_tick_is_given_only_to_gpus_that_were_seen(result):
    ticked = rendered(result, "table").startswith("✔")
    assert not ticked or (gpu_sight(result.nodes[0]).sight is Sight.SEEN and not result.findings)


def test_every_format_renders(result):
    for name in names():
        assert rendered(result, name)
