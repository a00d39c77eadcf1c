"""docs/contributing.md is performed, section by section, in a copy of the tree: files are written, commands run."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

from tests.copied import COPIED, Copy
from tests.shown import ROOT
from tests.tables import examples

PAGE = (ROOT / "docs" / "contributing.md").read_text()
PROGRAMS = {
    "topodiag": [sys.executable, "-m", "topodiag"],
    "pytest": [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
    "python": [sys.executable],
}
_STEP = re.compile(
    r"(?:^(?P<verb>Create|Replace|Append to) `(?P<path>[^`]+)`:\n\n"
    r"|^In `(?P<in>[^`]+)`, (?P<how>above|below|in place of) `(?P<line>[^`]+)`:\n\n)?"
    r"^```(?P<language>\w+)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Step:
    """One code block of the page: a file to write, a line to change, or commands to run."""

    verb: str
    path: str
    line: str
    body: str


def steps(section: str) -> list[Step]:
    found = []
    for match in _STEP.finditer(section):
        verb = match["verb"] or match["how"] or "run"
        assert verb != "run" or match["language"] == "console", f"say what to do with this block: {match['body']}"
        found.append(Step(verb, match["path"] or match["in"] or "", match["line"] or "", match["body"]))
    return found


SECTIONS = {
    name: made for name, _, text in (part.partition("\n") for part in PAGE.split("\n## ")[1:]) if (made := steps(text))
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("tree"))


@pytest.fixture
def tree(copy: Copy) -> Iterator[Path]:
    with copy.for_a_test() as place:
        yield place


@pytest.mark.parametrize("section", SECTIONS)
def test_the_section_works_as_it_is_written(section: str, tree: Path) -> None:
    for step in SECTIONS[section]:
        if step.verb == "run":
            run(step.body, tree)
        else:
            write(step, tree / step.path)


def write(step: Step, path: Path) -> None:
    if step.verb in {"Create", "Replace"}:
        assert path.exists() == (step.verb == "Replace"), f"{step.verb} {step.path}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.body)
        return
    text = path.read_text()
    if step.verb == "Append to":
        path.write_text(text + step.body)
        return
    lines = text.splitlines(keepends=True)
    at = [number for number, line in enumerate(lines) if line.strip() == step.line]
    assert len(at) == 1, f"{step.path} has {len(at)} lines {step.line!r}"
    until = at[0] + (step.verb != "above")
    path.write_text("".join([*lines[: at[0] + (step.verb == "below")], step.body, *lines[until:]]))


def run(block: str, tree: Path) -> None:
    """The commands of a console block one after the other, each with the output below it."""
    clean = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LC_ALL", "FORCE_COLOR"}}
    env = clean | {"LANG": "C.UTF-8", "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'probes'}", "COLUMNS": "100"}
    for command, _, output in (part.partition("\n") for part in block.removeprefix("$ ").split("\n$ ")):
        program, *arguments = shlex.split(command)
        done = subprocess.run(
            [*PROGRAMS[program], *arguments],
            capture_output=True,
            text=True,
            cwd=tree,
            env=env,
            timeout=120,
            check=False,
        )
        assert done.returncode in (0, 1), f"$ {command}\n{done.stdout}{done.stderr}"
        if output.strip():
            pattern = re.sub(r"([*?[])", r"[\1]", output.strip("\n")).replace("...", "*")
            printed = done.stdout.strip("\n")
            assert fnmatchcase(printed, pattern), f"$ {command}\n{done.stdout}{done.stderr}"


def test_every_section_of_the_table_has_its_steps() -> None:
    named = re.findall(r"^\| \[([^\]]+)\]\(#", PAGE, re.MULTILINE)
    assert {name.lower() for name in named} == {name.lower() for name in SECTIONS}


# --- tools/new_check.py, performed in a copy of the tree: what it lays out is whole, and a check needs nothing else


OBSERVE = """\
        balancing = judged.os.numa_balancing
        if balancing.value is None:
            return self.unknown(judged, balancing.why or "whether NUMA balancing is on is not in the evidence")
        if not balancing.value:
            return self.clean(judged)
        return self.any_of(judged, [self._found(judged, ["kernel.numa_balancing"])])
"""
LINE = "= proc/sys/kernel/numa_balancing\t0\n"
EDITS = {
    "fault": [{"file": "trees/os-state.tree", "replace": LINE, "with": LINE.replace("0", "1"), "count": 1}],
    "unread": [{"file": "trees/os-state.tree", "replace": LINE, "with": "", "count": 1}],
}


def started(tree: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """A Python program that runs in the copy."""
    env = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'probes'}", "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, *argv], cwd=tree, env=env, capture_output=True, text=True, check=False, timeout=300
    )


def files(tree: Path) -> dict[str, bytes]:
    inside = [tree / name for name in COPIED]
    paths = [path for folder in inside for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(path.relative_to(tree)): path.read_bytes() for path in paths}


def test_a_node_check_is_one_file_one_line_one_fixture_and_its_test(tree: Path) -> None:
    before = files(tree)
    laid_out = started(
        tree, "tools/new_check.py", "HST009", "node", "--name", "NumaBalancing", "--title", "automatic NUMA balancing"
    )
    assert laid_out.returncode == 0, laid_out.stderr
    after = files(tree)
    module = "topodiag/checks/host/numa_balancing.py"
    cases = "fixtures/checks/HST009/cases.json"
    test = "tests/checks/host/test_numa_balancing.py"
    assert set(after) - set(before) == {module, cases, test}
    assert [path for path in before if after[path] != before[path]] == ["topodiag/checks/catalogue.toml"]
    assert started(tree, "-m", "ruff", "check", "topodiag/checks", test).returncode == 0
    assert started(tree, "-m", "ruff", "format", "--check", module, test).returncode == 0

    unwritten = started(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", test)
    assert unwritten.returncode == 1
    assert "NotImplementedError: HST009" in unwritten.stdout

    source = (tree / module).read_text()
    head, _, rest = source.partition("        raise NotImplementedError")
    (tree / module).write_text(head + OBSERVE + rest.partition("\n")[2])
    text = (tree / test).read_text()
    (tree / test).write_text(
        text.replace("nodes.hgx_h100()", "nodes.with_os(nodes.hgx_h100(), numa_balancing=nodes.read(False))")
    )
    situations = json.loads((tree / cases).read_text())
    for case in situations:
        case["edits"] = EDITS.get(case["name"], [])
    (tree / cases).write_text(json.dumps(situations, indent=1))

    where = [test, "tests/checks/test_page.py", "tests/checks/test_run.py", "tests/test_cases_replay.py"]
    written = started(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "HST009 or numa or order", *where)
    assert written.returncode == 0, written.stdout
    asked = "from topodiag.checks import registry as r; print('HST009' in r.ids(), *r.check_classes('HST009'))"
    process = started(tree, "-c", asked)
    assert process.stdout == "True <class 'topodiag.checks.host.numa_balancing.NumaBalancing'>\n"


@examples("argv", "words")
def test_what_cannot_be_laid_out_is_said_in_one_line(argv: list[str], words: str) -> None:
    done = started(ROOT, "tools/new_check.py", *argv)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_id_of_another_subject_becomes_a_companion(tree: Path) -> None:
    for subject, name in (("job", "FewerNvlinksInJob"), ("bench", "FewerNvlinksInRun")):
        done = started(tree, "tools/new_check.py", "NVL001", subject, "--name", name)
        assert done.returncode == 0, done.stderr
    program = (
        "from topodiag.checks.registry import *\n"
        "print([cls.__module__ for cls in check_classes('NVL001')], check_class('NVL001').__name__)"
    )
    assert started(tree, "-c", program).stdout == (
        "['topodiag.checks.nvlink.links', 'topodiag.checks.nvlink.fewer_nvlinks_in_job',"
        " 'topodiag.checks.nvlink.fewer_nvlinks_in_run'] FewerNvlinks\n"
    )
    assert started(tree, "-m", "ruff", "check", "topodiag/checks", "tests/checks").returncode == 0


# --- CONTRIBUTING.md, the pre-commit hooks, the forge's workflow and .ci/run agree on one set of commands


COMMANDS = re.findall(r"```sh\n(.*?)\n```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
CI = (ROOT / ".ci" / "run").read_text()
LINTERS = [re.sub(r"\s+", " ", part.strip()) for part in COMMANDS[2].split("&&")]


def test_contributing_has_three_commands() -> None:
    assert len(COMMANDS) == 3
    assert "pip install" in COMMANDS[0]
    assert COMMANDS[1].startswith(".venv/bin/pytest")


def test_ci_runs_the_linters_of_contributing() -> None:
    assert LINTERS
    assert [linter for linter in LINTERS if linter not in CI.splitlines()] == []


def test_the_hooks_run_the_linters_of_contributing_and_need_no_network() -> None:
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = [hook for repo in repos for hook in repo["hooks"]]
    assert {repo["repo"] for repo in repos} == {"local"}
    assert {hook["language"] for hook in hooks} == {"system"}
    programs = [linter.split()[:2] for linter in LINTERS]
    entries = [hook["entry"].split() for hook in hooks]
    assert [program for program in programs if not any(entry[: len(program)] == program for entry in entries)] == []


def test_the_forge_runs_ci_on_push_and_on_pull_requests() -> None:
    # YAML 1.1 reads the key `on` as true.
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert set(workflow[True]) == {"push", "pull_request"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert any(step.get("run") == ".ci/run" for step in steps)
    versions = {version for job in workflow["jobs"].values() for version in job["strategy"]["matrix"]["python"]}
    assert versions == {"3.11", "3.12", "3.13"}
