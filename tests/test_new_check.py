"""tools/new_check.py, performed in a copy of the tree: what it lays out is whole, and a check needs nothing else."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.copied import COPIED, Copy
from tests.shown import ROOT
from tests.tables import examples

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


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("tree"))


@pytest.fixture
def tree(copy: Copy) -> Iterator[Path]:
    with copy.for_a_test() as place:
        yield place


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

    where = [test, "tests/checks/test_catalogue.py", "tests/checks/test_run.py", "tests/test_cases_replay.py"]
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
