"""Commands one after the other in a folder of files, as users run them, and what each of them answers.

The sessions are rows of `sessions/*.toml`, one file a command, each under its claim. A row has the files that are
`given`: a text, or a list with the name of a builder of `given.py` and its arguments. It is a step itself, has `steps`,
or is a session for `each` of some. A step has a `command`, perhaps an `env`, a `stdin` or that of the step whose number
is `after`, and `fake`, what the pipeline does in the place of the real one (see fake_program.py); `into` names a file
for its output, with some words `replaced`.
"""

import json
import shlex
import tomllib
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests import program
from tests.checks.wanted import matches
from tests.cli.given import BUILDERS
from tests.shown import ROOT
from tests.tables import edited

GIVEN = {"given", "steps", "command", "env", "stdin", "after", "fake", "into", "replaced", "width"}
WANTED = {
    "code", "out", "err", "words", "err_words", "lacks", "err_lacks", "begins", "err_begins", "ends", "is", "err_is",
    "most_lines", "most_columns", "counts", "json", "files", "same", "ascii", "refused", "last",
}  # fmt: skip
"""What a step can say. The exit code; words of its output and of its errors, whatever the lines (`words`), some that
neither has; how they begin and end, the whole of them, the last line; how many lines or columns there are at most, and
how often a text is. Values of its JSON by their paths (see `matches`). Words of files that are there, "none" for
those that are not. Which step's output is the `same`. `refused` is an exit with 2 and one line of error, its words."""


def rows() -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
    """What is given and the steps of each session, by command and claim."""
    table = {}
    for path in sorted((Path(__file__).parent / "sessions").glob("*.toml")):
        for claim, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
            steps = row.get("steps") or row.get("each") or [row]
            for step in steps:
                assert step.keys() <= GIVEN | WANTED, f"{path.stem}: {claim}: {step.keys() - GIVEN - WANTED}"
                assert step.keys() & (WANTED | {"into"}), f"{path.stem}: {claim} says nothing"
            for session in [[step] for step in steps] if "each" in row else [steps]:
                first = " ".join(session[0][name] for name in ("fake", "command") if name in session[0])
                name = f"{path.stem}: {claim}" + (f" [{first.replace('{ROOT}/', '')}]" if "each" in row else "")
                assert name not in table, name
                table[name] = (row.get("given", {}), session)
    return table


ROWS = rows()


def valued(document: Any, path: str) -> Any:
    """The value at a path of a document: keys, in which `~` stands for a slash, numbers of items, `*` for each of them,
    and `keys` at its end for the names of a table; "null" for what TOML has not."""
    name, _, rest = path.partition("/")
    if name == "*":
        return [valued(item, rest) for item in document]
    if name == "keys":
        return sorted(document)
    value = document[int(name) if isinstance(document, list) else name.replace("~", "/")]
    return valued(value, rest) if rest else "null" if value is None else value


def written(path: Path, words: Any) -> Any:
    """The words of a file that it has, or "none" where it is not there."""
    if not path.exists():
        return "none"
    return "there" if isinstance(words, str) else [each for each in words if each in path.read_text(encoding="utf-8")]


def answered(done: CompletedProcess[str], column: str, wanted: Any, folder: Path, before: list[str]) -> Any:
    """What a command answers where a row says what it should."""
    out, err = done.stdout, done.stderr
    texts = {"out": out, "err": err, "words": " ".join(out.split()), "err_words": " ".join(err.split())}
    match column:
        case "code":
            return done.returncode
        case "out" | "err" | "words" | "err_words":
            return [each for each in wanted if each in texts[column]]
        case "lacks" | "err_lacks":
            return [each for each in wanted if each not in (out if column == "lacks" else err)]
        case "begins" | "err_begins":
            return (out if column == "begins" else err)[: len(wanted)]
        case "ends":
            return out[-len(wanted) :]
        case "is" | "err_is":
            return out if column == "is" else err
        case "last":
            return out.splitlines()[-1]
        case "most_lines":
            return max(wanted, len(out.splitlines()))
        case "most_columns":
            return max(wanted, *map(len, out.splitlines()))
        case "counts":
            return {each: out.count(each) for each in wanted}
        case "json":
            document = json.loads(out)
            values = {path: valued(document, path) for path in wanted}
            return {path: own if matches(values[path], own) else values[path] for path, own in wanted.items()}
        case "files":
            return {name: written(folder / name, words) for name, words in wanted.items()}
        case "same":
            return before.index(out) if out in before else out
        case "ascii":
            return out.isascii()
    assert (done.returncode, out) == (2, ""), err
    first, *rest = err.splitlines()
    assert first.startswith("topodiag: error: ")
    assert len(rest) <= 1
    return [each for each in wanted if each in texts["err_words"]]


def placed(value: Any, folder: Path) -> Any:
    """A row with the folder of the session where `{HERE}` stands in its texts."""
    if isinstance(value, dict):
        return {name: placed(item, folder) for name, item in value.items()}
    if isinstance(value, list):
        return [placed(item, folder) for item in value]
    return value.replace("{HERE}", str(folder)).replace("{ROOT}", str(ROOT)) if isinstance(value, str) else value


@pytest.mark.parametrize("name", ROWS)
def test_commands_answer_as_their_row_says(name: str, tmp_path: Path) -> None:
    given, steps = ROWS[name]
    for file, content in given.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            (tmp_path / file).write_text(content, encoding="utf-8")
        else:
            BUILDERS[content[0]](tmp_path / file, *content[1:])
    before: list[str] = []
    for step in placed(steps, tmp_path):
        entry = {"entry": "tests.cli.fake_program"} if "fake" in step else {}
        done = program.run(
            *shlex.split(step["command"]),
            env={"COLUMNS": str(step.get("width", 80)), "FAKE": step.get("fake", "")} | step.get("env", {}),
            input=before[step["after"]] if "after" in step else step.get("stdin", ""), cwd=tmp_path, **entry,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        if "into" in step:
            (tmp_path / step["into"]).write_text(edited(done.stdout, step.get("replaced")), encoding="utf-8")
        wanted = {column: value for column, value in step.items() if column in WANTED}
        assert {
            column: answered(done, column, value, tmp_path, before) for column, value in wanted.items()
        } == wanted, done.stderr
        before.append(done.stdout)
