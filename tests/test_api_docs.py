"""docs/api.md: its example runs as it stands, and its list of tables is that of the registry."""

import io
import re
from contextlib import redirect_stdout
from typing import Any

import pytest

from tests.shown import ROOT
from tools import build_api_docs as tool

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python|text)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_example_prints_what_the_page_shows() -> None:
    names: dict[str, Any] = {}
    shown = iter([*BLOCKS, ("", "")])
    ran = 0
    for kind, text in shown:
        if kind != "python":
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(text, "docs/api.md", "exec"), names)
        following, wanted = next(shown)
        assert following == "text", text
        assert "\n".join(line.rstrip() for line in printed.getvalue().splitlines()) == wanted.rstrip("\n"), text
        ran += 1
    assert ran == 6


def test_the_list_of_tables_is_that_of_the_registry() -> None:
    assert tool.written(PAGE) == PAGE, "run python tools/build_api_docs.py"


@pytest.mark.parametrize("broken", ["# No place\n", tool.START])
def test_a_page_without_a_place_for_the_tables_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match="lacks the lines"):
        tool.written(broken)
