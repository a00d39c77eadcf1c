"""What a search is remembered by holds every setting that a system or a search asks for."""

import re
from dataclasses import fields
from pathlib import Path

from topodiag.nccl import search
from topodiag.nccl.search.searched import _NAMES, _given
from topodiag.nccl.settings import Settings

ROOM = Path(search.__file__).parents[1]


def read_by_searches() -> str:
    """The source of the rooms that build systems and search them, without the key's own."""
    files = [*(ROOM / "search").glob("*.py"), *(ROOM / "graph").glob("*.py")]
    return "\n".join(path.read_text() for path in files if path.name != "searched.py")


def test_a_setting_that_a_search_asks_for_is_part_of_its_key() -> None:
    other = {bool: lambda value: not value, int: lambda value: value + 1, type(None): lambda value: 1}
    for each in fields(Settings):
        if each.name == "values" or not re.search(rf"\bsettings\.{each.name}\b", read_by_searches()):
            continue
        plain = Settings()
        value = getattr(plain, each.name)
        changed = Settings(**{each.name: other[type(value)](value)})
        assert _given(plain) != _given(changed), each.name


def test_so_is_each_variable_that_it_asks_for_by_name() -> None:
    asked = set(re.findall(r"(?:settings\.values|\benv)\.get\(\"(\w+)\"", read_by_searches()))
    assert asked == set(_NAMES)
    for name in asked:
        assert _given(Settings()) != _given(Settings(values={name: "1"}))
