"""Lays out a new check: class, line of the catalogue, fixture folder and test.

python tools/new_check.py ID SUBJECT [--name NAME] [--title TITLE]

ID        a family and three digits, as HST001; the families are in topodiag/checks/registry.py
SUBJECT   what the check judges: node, topo, job, layout or bench
NAME      the class, as NumaBalancing; its module is then numa_balancing.py. Default: the id
TITLE     the fault in one line, in the present tense

An id that another subject carries already becomes a companion there: the same fault, shown by other evidence.
What is laid out passes ruff and mypy. Its test fails until `observe` is written.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from string import Template

from topodiag.checks import registry
from topodiag.checks.page import SECTIONS
from topodiag.checks.registry import FAMILIES, FOLDERS, Subject

ROOT = Path(__file__).resolve().parent.parent
_ID = re.compile(r"[A-Z0-9]{3}[0-9]{3}")
_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_LINE = re.compile(r"^([A-Z0-9]{6}) = \{ ([^}]*) \}\n", re.MULTILINE)

HELP = {
    "What it finds": "The fault, and each form that it takes.",
    "Why it matters": "What it costs, in GB/s or ms, and what of the job waits for it.",
    "Evidence it reads": "Files, commands and lines of a log.",
    "When it stays silent": "Each reason to be clean, not applicable or unknown.",
    "How to confirm": "a command to type                    what it shows",
    "How to fix": "What to change, first what is most often the cause.",
    "References": "A datasheet, a source file with its version, a paper.",
}
"""What each section of the page is to say."""

OF_SUBJECT = {
    # Subject: (base class, its import, what is judged, its import, where its findings are)
    Subject.NODE: ("NodeCheck", "topodiag.checks.interface", "Node", "topodiag.model.node", "judged"),
    Subject.TOPO: ("FileCheck", "topodiag.checks.shared.topo_file", "Node", "topodiag.model.node", "judged"),
    Subject.JOB: ("JobCheck", "topodiag.checks.interface", "Job", "topodiag.model.job", ""),
    Subject.LAYOUT: ("PlacementCheck", "topodiag.checks.interface", "Audit", "topodiag.placement.audit", ""),
    Subject.BENCH: ("BenchCheck", "topodiag.checks.interface", "Benchmark", "topodiag.model.bench", "judged.run.hosts"),
}

MODULE = Template('''\
"""$title_sentence"""

from __future__ import annotations

from collections.abc import Sequence

$imports


class $name($base, id="$id"):
    """$id: $title

$page
    """

    def $observe -> Outcome:
        raise NotImplementedError("$id: decide here; answer any_of, or clean, not_applicable or unknown with why")

    def _found(self, judged: $judged, places: Sequence[str]) -> Finding:
        return self.finding(
            self.where($where),
            Advice(Severity.WARNING),
            f"{', '.join(places)}: $title",
            observed=", ".join(places),
            expected="what there should be instead",
            fix=("the first thing to change",),
            cost=Cost(text="what it costs"),
        )
''')

TESTS = {
    Subject.NODE: """\
from tests.checks import nodes
from topodiag.checks.$family.$module import $name
from topodiag.model.finding import Status


def test_a_healthy_node_is_clean() -> None:
    assert $name().judge(nodes.hgx_h100()).status is Status.CLEAN
""",
    Subject.TOPO: """\
from tests.checks.topo_trees import alone, board
from topodiag.checks.$family.$module import $name
from topodiag.model.finding import Status


def test_a_whole_file_is_clean() -> None:
    assert $name().judge(alone(board())).status is Status.CLEAN
""",
    Subject.JOB: """\
from tests.checks import jobs
from topodiag.checks.$family.$module import $name
from topodiag.model.finding import Status


def test_a_healthy_job_is_clean() -> None:
    assert $name().judge(jobs.job()).status is Status.CLEAN
""",
    Subject.LAYOUT: """\
from tests.checks.placement.test_layouts import block, cluster, judged
from topodiag.checks.$family.$module import $name
from topodiag.model.finding import Status
from topodiag.model.layout import Layout


def test_a_job_in_one_block_is_clean() -> None:
    assert $name().judge(judged(cluster(2), Layout(tp=8), block(16))).status is Status.CLEAN
""",
    Subject.BENCH: """\
from tests.checks.benches import benchmark
from topodiag.checks.$family.$module import $name
from topodiag.model.finding import Status


def test_a_run_that_reaches_what_is_expected_is_clean() -> None:
    assert $name().judge(benchmark()).status is Status.CLEAN
""",
}

CASES = (
    ("fault", "finding", "write edits that make the fault"),
    ("healthy", "clean", "the machine as it is built"),
    ("unread", "unknown", "write edits that take the evidence away"),
)
"""The situations of a check of nodes: one that fires it, one that keeps it silent, one that leaves it unknown."""

BASE = "dgx-h100-healthy"
"""The machine of fixtures/nodes that the situations are edits of."""


def lay_out(check_id: str, subject: Subject, name: str, title: str, root: Path = ROOT) -> list[Path]:
    """Writes the files and returns them. Raises ValueError where the id or a name is taken or malformed."""
    _refuse(check_id, subject, name, title, root)
    module = _snake(name)
    family = FOLDERS[check_id[:3]]
    room = root / "topodiag" / "checks" / family
    made = {
        room / f"{module}.py": _module(check_id, subject, name, title),
        root / "tests" / "checks" / family / f"test_{module}.py": _test(check_id, subject, name, title),
    }
    if subject in (Subject.NODE, Subject.TOPO):
        made[root / "fixtures" / "checks" / check_id / "cases.json"] = _cases()
    taken = [path for path in made if path.exists()]
    if taken:
        raise ValueError(f"{taken[0].relative_to(root)} is there already; choose another --name")
    line = f'{subject.value} = "{module}:{name}"'
    catalogue = room.parent / "catalogue.toml"
    made[catalogue] = _registered(catalogue.read_text(encoding="utf-8"), check_id, line)
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(made)


def _refuse(check_id: str, subject: Subject, name: str, title: str, root: Path) -> None:
    if not _ID.fullmatch(check_id):
        raise ValueError(f"{check_id!r} is not an id: a family and three digits, as HST001")
    if check_id[:3] not in FAMILIES:
        raise ValueError(f"there is no family {check_id[:3]}; there are {', '.join(FAMILIES)} ({registry.__name__})")
    if registry.has_check(subject, check_id):
        raise ValueError(f"{check_id} is a check of {subject.value} already")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name of a class, as LowLockedMemory")
    if not title or '"' in title or "\\" in title or "\n" in title or len(title) > 90:
        raise ValueError("the title is one line of at most 90 characters, without quotes")


def _module(check_id: str, subject: Subject, name: str, title: str) -> str:
    base, base_from, judged, judged_from, where = OF_SUBJECT[subject]
    of_file = subject is Subject.TOPO
    imports = {
        "topodiag.checks.interface": "Advice" if of_file else f"Advice, {base}",
        judged_from: judged,
        "topodiag.model.finding": "Cost, Finding, Outcome, Severity",
    } | ({"topodiag.model.nccl_tree": "NcclFile", base_from: base} if of_file else {})
    page = "\n\n".join(f"    {section}\n        {HELP[section]}" for section in SECTIONS)
    observe = f"observe(self, judged: {judged}, peers: Sequence[{judged}])"
    return MODULE.substitute(
        id=check_id,
        name=name,
        title=title,
        title_sentence=f"{title[0].upper()}{title[1:]}.",
        base=base,
        judged=judged,
        where=where,
        observe=f"observe_file(self, node: {judged}, file: NcclFile)" if of_file else observe,
        imports="\n".join(f"from {module} import {names}" for module, names in sorted(imports.items())),
        page=page,
    )


def _test(check_id: str, subject: Subject, name: str, title: str) -> str:
    body = Template(TESTS[subject]).substitute(family=FOLDERS[check_id[:3]], module=_snake(name), name=name)
    return f'"""{check_id}: {title}."""\n\n{body}'


def _cases() -> str:
    cases = [{"name": name, "base": BASE, "expect": expect, "why": why, "edits": []} for name, expect, why in CASES]
    return json.dumps(cases, indent=1) + "\n"


def _registered(text: str, check_id: str, line: str) -> str:
    """The catalogue with a line for the id at its place, or with the new class behind those of others that show its
    fault: the first one carries the page."""
    for found in _LINE.finditer(text):
        if found[1] == check_id:
            classes = [part.strip() for part in found[2].split(",") if part.strip()]
            return text[: found.start()] + _line(check_id, [*classes, line]) + text[found.end() :]
    place = next((found.start() for found in _LINE.finditer(text) if _place(found[1]) > _place(check_id)), len(text))
    return text[:place] + _line(check_id, [line]) + text[place:]


def _line(check_id: str, classes: list[str]) -> str:
    return f"{check_id} = {{ {', '.join(classes)} }}\n"


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _place(check_id: str) -> tuple[int, str]:
    return list(FAMILIES).index(check_id[:3]), check_id


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("id", metavar="ID")
    parser.add_argument("subject", metavar="SUBJECT", choices=[subject.value for subject in Subject])
    parser.add_argument("--name", default="")
    parser.add_argument("--title", default="what is wrong, in one line")
    given = parser.parse_args()
    name = given.name or given.id.capitalize()
    try:
        made = lay_out(given.id, Subject(given.subject), name, given.title)
    except ValueError as error:
        print(f"new_check: {error}", file=sys.stderr)
        return 2
    for path in made:
        print(path.relative_to(ROOT))
    folder = "" if given.subject not in ("node", "topo") else f" and the edits in fixtures/checks/{given.id}/cases.json"
    print(f"Write observe and the page{folder}; then run python tools/build_docs.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
