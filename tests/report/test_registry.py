"""Formats of results by their names."""

import pytest

from topodiag.model.errors import TopodiagError
from topodiag.report.registry import names, report


@pytest.mark.parametrize("name", [name for name in names() if name != "table"])
def test_a_format_that_the_command_offers_is_written(name: str) -> None:
    assert callable(report(name))


@pytest.mark.parametrize("name", ["", "yaml", "table", "..words", "json.plain"])
def test_another_name_is_refused_with_the_names_that_there_are(name: str) -> None:
    with pytest.raises(TopodiagError, match=r"the formats are json, prometheus, nagios$"):
        report(name)
