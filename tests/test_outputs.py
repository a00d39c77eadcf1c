"""What people paste when they ask, some lines of one tool without anything around them: the fault that stands there
comes first, and the same words where nothing is wrong accuse nobody.

The texts are rows of `tests/outputs/*.toml`, one file a subject, each under its claim. A row has a `text`, or is one of
the file's `[texts]` filled `with` values, with some words `replaced` by others, or repeated for so many `lines`, `at`
every tenth step with the values of a `cycle`; perhaps `beside` files of other names. One that is `filled` with several
texts is a row for each, which stands for `{}`; lines that are `repeated` stand there so many times. A row says what the
answer has; one that says nothing accuses nobody.
"""

import tomllib
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.files import laid
from tests.pasted import answer
from tests.tables import edited
from topodiag.model.errors import TopodiagError

UNREAD: dict[str, Any] = {
    "findings": [],
    "verdict": {"state": "unknown", "causes": []},
    "unexplained": [],
    "facts": {},
    "outcomes": [],
}
"""The answer on a text of no kind that is known: it accuses nobody, and calls nothing healthy."""
CLAIMS = {
    "first", "severity", "message", "observed", "fix", "last_step", "findings", "loud", "among", "without", "chain",
    "state", "headline", "causes", "says", "unexplained", "troubles", "facts", "outcomes", "why", "finding", "quoted",
}  # fmt: skip
"""What a row can say of the answer. Of the first finding: its id, its severity (none says that it is no note), words of
its message and of what was observed, the first steps of its fix and words of the last. Of all: their ids, those of
errors and warnings, some that must be or must not be among them, each with the id that it follows from ("" without).
Of the verdict: its state, words of its headline, the ids of its causes and their sentences. The lines, or how many,
that nothing explains, and those of them that are not known as harmless (`troubles`); and fields of the facts. Of checks
by their ids: their `outcomes`, words of the reason (`why`), whose finding quotes the text (`quoted`), and what the one
`finding` of each says: severity, confidence, the parts that it is about, all lines of its evidence, and of a sentence
all of it or words that it has or lacks."""


def rows() -> dict[str, dict[str, Any]]:
    """The rows of all files by subject and claim, each with its text."""
    table = {}
    for path in sorted((Path(__file__).parent / "outputs").glob("*.toml")):
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
        forms = sections.pop("texts", {})
        for claim, row in sections.items():
            if "of" in row:
                form, values = forms[row.pop("of")], row.pop("with", ())
                if "replaced" in row:
                    row["text"] = edited(form, row.pop("replaced"))
                elif "lines" in row:
                    steps = zip(range(row.pop("lines")), cycle(row.pop("cycle")), strict=False)
                    row["text"] = "".join(f"{form.format(at=10 * number, **step)}\n" for number, step in steps)
                else:
                    row["text"] = form.format(**values) if isinstance(values, dict) else form.format(*values)
            repeated = row.pop("repeated", {})
            for number, value in enumerate(row.pop("filled", [None])):
                name = f"{path.stem}: {claim}" + ("" if value is None else f" [{number}: {value.strip()[-40:]}]")
                assert row.keys() <= CLAIMS | {"text", "beside"}, name
                assert name not in table, name
                text = row["text"] if value is None else row["text"].replace("{}", value)
                for line, count in repeated.items():
                    text = text.replace(line, line * count)
                table[name] = row | {"text": text}
    return table


ROWS = rows()


def answered(folder: Path, text: str, beside: dict[str, str]) -> dict[str, Any]:
    """The whole result, as `--format json` prints it."""
    laid(folder, {"out.txt": text} | beside)
    try:
        return answer(folder if beside else folder / "out.txt")
    except TopodiagError:
        return UNREAD


def fits(wanted: Any, value: Any) -> bool:
    """Whether a value has what is wanted: the fields of a record, each item of a list; TOML spells JSON's null out."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(fits(item, value.get(name)) for name, item in wanted.items())
    if isinstance(wanted, list):
        return isinstance(value, list) and len(wanted) == len(value) and all(map(fits, wanted, value))
    return value is None if wanted == "null" else bool(value == wanted)


def sentences(finding: dict[str, Any]) -> dict[str, str]:
    """What a finding says: its sentences by their names, the steps of its fix together, its first line of evidence."""
    steps = finding["fix"]
    told = {name: finding[name] for name in ("message", "observed", "expected")} | {"cost": finding["cost"]["text"]}
    lines = [line["text"] for line in finding["evidence"]]
    return told | {"fix": " ".join(steps), "first_step": steps[0], "last_step": steps[-1], "evidence": lines[0]}


def assert_says(finding: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Hold a finding to the columns of a row: a text is the whole sentence, a list is of words in it."""
    table = sentences(finding)
    exact = finding["where"] | {name: finding[name] for name in ("severity", "confidence")}
    exact["gbs_lost"] = finding["cost"]["gbs_lost"]
    for column, value in wanted.items():
        if column.endswith("_lacks"):
            assert [words for words in value if words in table[column.removesuffix("_lacks")]] == []
        elif column == "all_evidence":
            assert sorted(line["text"] for line in finding["evidence"]) == sorted(value)
        elif column in table and isinstance(value, list):
            assert [words for words in value if words not in table[column]] == [], table[column]
        else:
            assert (table | exact)[column] == value, column


@pytest.mark.parametrize("name", ROWS)
def test_an_output_gives_what_its_row_says(tmp_path: Path, name: str) -> None:
    row = dict(ROWS[name])
    text = row.pop("text")
    result = answered(tmp_path, text, row.pop("beside", {}))
    findings, verdict = result["findings"], result["verdict"]
    ids = [finding["id"] for finding in findings]
    if "first" in row:
        assert ids[:1] == [row["first"]]
        assert findings[0]["evidence"]
        assert findings[0]["severity"] in row.get("severity", "warning error").split()
        assert verdict["state"] != "healthy"
    for column in ("message", "observed"):
        assert [words for words in row.get(column, ()) if words not in findings[0][column]] == []
    assert "fix" not in row or findings[0]["fix"][: len(row["fix"])] == row["fix"]
    assert "last_step" not in row or row["last_step"] in findings[0]["fix"][-1]
    assert set(row.get("among", ())) <= set(ids)
    assert not set(row.get("without", ())) & set(ids)
    assert row.get("headline", "") in verdict.get("headline", "")
    assert fits(row.get("facts", {}), result["facts"])
    lines = [trouble["text"] for trouble in result["unexplained"]]
    exact = {
        "findings": ids,
        "loud": [finding["id"] for finding in findings if finding["severity"] != "info"],
        "chain": [[finding["id"], (finding["follows_from"] or {}).get("check", "")] for finding in findings],
        "state": verdict["state"],
        "causes": [cause["check"] for cause in verdict["causes"]],
        "says": [cause["message"] for cause in verdict["causes"]],
        "unexplained": len(lines) if isinstance(row.get("unexplained"), int) else lines,
        "troubles": [trouble["text"] for trouble in result["unexplained"] if not trouble["harmless"]],
        "quoted": [
            each["id"]
            for each in findings
            if each["id"] in row.get("quoted", ()) and each["evidence"][0]["text"].strip()[:40] in text
        ],
    }
    for check, columns in row.get("finding", {}).items():
        (finding,) = (finding for finding in findings if finding["id"] == check)
        assert_says(finding, columns)
    outcomes = {outcome["check"]: outcome["status"] for outcome in reversed(result["outcomes"])}
    assert {check: outcomes[check] for check in row.get("outcomes", {})} == row.get("outcomes", {})
    reasons = {outcome["check"]: outcome["why"] for outcome in reversed(result["outcomes"])}
    assert [check for check, words in row.get("why", {}).items() if words not in reasons[check]] == []
    wanted = {column: value for column, value in row.items() if column in exact} if row else {"loud": []}
    assert {column: exact[column] for column in wanted} == wanted
