"""What a person reads is plain English: words that only this house uses are in no output, help or page."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shown import ROOT

WORDS = {
    r"\bsiblings?\b": "peers, or the other nodes, GPUs, ports",
    r"\breckon(?!able)\w*": "NCCL's model gives, NCCL assumes",
    r"\bthe wires\b": "the links",
    r"\bwho\w* talks? to whom\b": "which ranks form groups",
    r"\bwhom the others wait for\b": "which rank the others wait for",
    r"\bin the place of\b": "instead of",
    r"\bwhy is open\b": "root cause not known yet",
    r"\bis told by nobody\b": "the log does not say",
    r"\breads like\b": "resembles",
    r"\bof such a way\b": "(name the thing)",
    r"\bto be expected of\b": "expect",
    r"\bsupported: other causes\b": "likely",
    r"\bchecks? judged\b": "checks ran",
    r"\bof no kind that topodiag knows\b": "unknown file type",
    r"\bnext to nothing\b": "almost nothing",
    r"\bplace look\b|\bemit svg\b|\bbench show\b|\btopodiag checks\b": "a former spelling",
}
"""What may not appear, and what to write."""
QUIET = ("topodiag/evidence", "topodiag/model/nccl_versions.py")
"""Here strings are words of foreign texts, or say where in NCCL's source something stands."""
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "docs" / "topodiag.1"])
ADVICE = [
    entry
    for path in sorted((ROOT / "topodiag" / "checks" / "advice").glob("*.toml"))
    for value in tomllib.loads(path.read_text(encoding="utf-8")).values()
    for entry in (value if isinstance(value, list) else [value])
]
MODULES = sorted(
    path
    for path in (ROOT / "topodiag").rglob("*.py")
    if not str(path.relative_to(ROOT)).startswith(QUIET)
)  # fmt: skip


def strings(path: Path) -> Iterator[str]:
    """The strings of a module that can be printed: not patterns, and docstrings only where they are help or pages."""
    shown = path.relative_to(ROOT / "topodiag").parts[0] in {"checks", "cli"}
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.STRING and not re.match(r"[bB]?[rR]", token.string):
            alone = before in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT}
            if " " in token.string and (shown or not (alone and token.string.startswith('"""'))):
                yield " ".join(re.sub(r"\{[^{}]*\}", "", token.string).split())
        before = token.type


def found(text: str) -> dict[str, str]:
    return {match[0]: better for pattern, better in WORDS.items() if (match := re.search(pattern, text))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_them(page: Path) -> None:
    assert found(" ".join(page.read_text(encoding="utf-8").split())) == {}


def test_no_sentence_of_the_program_has_them() -> None:
    faults = {
        str(path.relative_to(ROOT)): table for path in MODULES for text in strings(path) if (table := found(text))
    }
    assert faults == {}
    assert [found(str(entry)) for entry in ADVICE if found(str(entry))] == []


@pytest.mark.parametrize("text", ["as its siblings", "NCCL reckons 6 GB/s", "faster than the wires allow"])
def test_they_are_seen(text: str) -> None:
    assert found(text)


def steps(path: Path) -> Iterator[str]:
    """The strings that are steps of a fix, as they stand in its `fix=(...)`."""
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.keyword) and call.arg == "fix" and isinstance(call.value, ast.Tuple):
            yield from (expr.value for expr in call.value.elts if isinstance(expr, ast.Constant))


def test_no_step_of_a_fix_ends_in_a_colon() -> None:
    """A step is read alone, as what to do: what follows it is not on that line."""
    texts = [step for path in (ROOT / "topodiag" / "checks").rglob("*.py") for step in steps(path)]
    texts += [step for entry in ADVICE for step in entry.get("fix", ())]
    assert len(texts) > 100
    assert [step for step in texts if step.rstrip().endswith(":")] == []
