"""The sentences of `checks/advice/`: each entry has its place in the code, and the words that it asks for."""

from __future__ import annotations

import ast
import string
import tomllib
from collections.abc import Iterator

from tests.shown import ROOT
from topodiag.checks.registry import FOLDERS

CHECKS = ROOT / "topodiag" / "checks"
KEYS = {"expected", "fix", "cost", "share"}
ENTRIES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in (CHECKS / "advice").glob("*.toml")}


def _asked() -> Iterator[tuple[set[str], str, set[str]]]:
    """Of each call of `advice`: the files of the folder's families, the name, and the words that it gives."""
    for path in CHECKS.rglob("*.py"):
        folder = path.relative_to(CHECKS).parts[0]
        families = {family.lower() for family, name in FOLDERS.items() if name == folder}
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "advice":
                assert isinstance(call.args[0], ast.Constant)
                yield families, str(call.args[0].value), {str(word.arg) for word in call.keywords}


def _words(entry: dict[str, object]) -> set[str]:
    fixes = entry.get("fix", [])
    assert isinstance(fixes, list)
    texts = [str(entry.get("expected", "")), str(entry.get("cost", "")), *fixes]
    return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}


def test_each_name_that_the_code_asks_for_is_an_entry_with_the_words_that_it_is_given() -> None:
    for families, name, words in _asked():
        held = [ENTRIES[family][name] for family in families & ENTRIES.keys() if name in ENTRIES[family]]
        assert len(held) == 1, name
        assert not words or _words(held[0]) == words, name


def test_no_entry_is_left_over_and_none_has_an_unknown_key() -> None:
    names = {name for _, name, _ in _asked()}
    assert {name for entries in ENTRIES.values() for name in entries} == names
    assert all(entry.keys() <= KEYS for entries in ENTRIES.values() for entry in entries.values())
