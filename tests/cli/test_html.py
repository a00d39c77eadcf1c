"""`--html FILE` and `--redact` on each command that reports: a page beside the usual output, whole or not at all, over
no input; and no name, address or serial left in either."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.app.judge.test_history import FIXTURES, capture
from tests.cli import small_log
from tests.cli.command_tree import ALL
from tests.report.html.pages import Element, by_id, data_of, read
from tests.tables import examples
from topodiag.cli import cli
from topodiag.cli.errors import Outcome, run
from topodiag.report.documents.from_model import VERSIONS
from topodiag.sweep.plan import first_round
from topodiag.sweep.planfile import plan_text
from topodiag.sweep.values import Fabric
from topodiag_probes.tokens import Tokens

KEY = "a site's key"
HOST, OTHER = "zebra-17", "zebra-18"
PLANTED = (HOST, OTHER, "acmecorp", "alice", "10.71.72.73", "GPU-5398c7c0", "5c:ff:35:b6:0b:c1")
"""What identifies somebody in the evidence of these tests; all of it lies below a folder `acmecorp`."""


def node(folder: Path, host: str = HOST) -> str:
    return capture(folder / host, host, "2026-03-01T08:00:00Z", base="busy-gen1")


def log(folder: Path) -> str:
    text = small_log.log().replace("node-a", HOST)
    text += f"{HOST}:10:10 [0] NCCL INFO Bootstrap : Using eth0:10.71.72.73<0>\n"
    text += f"{HOST}:10:10 [0] NCCL INFO NCCL_TOPO_FILE set by environment to /home/alice/topo.xml\n"
    (folder / "rank.log").write_text(text)
    return str(folder / "rank.log")


def table(folder: Path) -> str:
    lines = (FIXTURES.parent / "tables" / "all-reduce-healthy" / "out.txt").read_text().splitlines()
    named = [" ".join([*line.split(" on ")[:-1], "on", HOST, "device", line.split(" device ")[-1]])
             if line.startswith("#  Rank") else line for line in lines]  # fmt: skip
    (folder / "all_reduce.txt").write_text("\n".join(named) + "\n")
    return str(folder / "all_reduce.txt")


def hosts(folder: Path) -> tuple[str, ...]:
    (folder / "hosts").write_text("".join(f"{host} slots=8\n" for host in (HOST, OTHER)))
    return ("--hostfile", str(folder / "hosts"), "--nodelist", f"{HOST},{OTHER}", "--tp", "16")


def sweep(folder: Path) -> str:
    plan = first_round(Fabric((HOST, OTHER), 2, 1))
    (folder / "plan-1.json").write_text(plan_text(plan))
    rows = [{"run": sweep_run.id, "round": 1, "attempt": 1, "state": "ok", "gbs": 400.0, "size": 1 << 30, "seconds": 3,
             "exit": 0} for sweep_run in plan.runs]  # fmt: skip
    rows[0] |= {"state": "failed", "gbs": None, "exit": 2, "why": f"no route to {OTHER}"}
    (folder / "results.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(folder)


def two(folder: Path) -> tuple[str, str]:
    return node(folder), node(folder, OTHER)


COMMANDS: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "diagnose": lambda at: ("diagnose", node(at), log(at)),
    "scan": lambda at: ("scan", node(at)),
    "logs": lambda at: ("logs", log(at)),
    "ras": lambda at: ("ras", HOST, "--with", log(at)),
    "bench ./": lambda at: ("bench", table(at)),
    "bench read": lambda at: ("bench", "read", sweep(at)),
    "topo show": lambda at: ("topo", "show", node(at)),
    "topo check": lambda at: ("topo", "check", node(at)),
    "topo predict": lambda at: ("topo", "predict", node(at)),
    "topo what-if": lambda at: ("topo", "what-if", node(at), "--off", "gdr"),
    "topo diff": lambda at: ("topo", "diff", *two(at)),
    "place audit": lambda at: ("place", "audit", *hosts(at)),
    "place solve": lambda at: ("place", "solve", *hosts(at)),
    "fleet compare": lambda at: ("fleet", "compare", "--workers", "1", *two(at)),
    "fleet history": lambda at: ("fleet", "history", str(Path(two(at)[0]).parent)),
}
"""Each command that reports on evidence, with evidence of two machines."""
NO_REPORT = {
    "explain": "text of ours",
    "model link": "a formula",
    "model collective": "a formula",
    "model hierarchy": "a formula",
    "model step": "a formula",
    "demo": "evidence that ships with the program",
    "fleet collect": "an order and who obeyed it: the report is that of fleet compare",
}
"""Commands that print a page for a reader, and why nobody attaches it to a ticket."""


def test_every_command_that_prints_a_page_of_evidence_writes_it_as_html_and_redacts_it() -> None:
    options = {" ".join(words): {opt for param in command.params for opt in param.opts}
               for words, command in ALL.items() if not isinstance(command, click.Group)}  # fmt: skip
    pages = {name for name, given in options.items() if "--width" in given}
    assert pages == {*COMMANDS, *NO_REPORT}
    assert {name for name, given in options.items() if "--html" in given} == set(COMMANDS)
    assert {name for name, given in options.items() if "--redact" in given} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_name_address_or_serial_is_left_in_page_or_output(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPODIAG_REDACT_KEY", KEY)
    monkeypatch.setattr("topodiag.app.case.ras.live_answers", lambda *_: ((), (), ()))
    monkeypatch.chdir(tmp_path)
    given, page = tmp_path / "acmecorp", tmp_path / "report.html"
    given.mkdir()
    words = COMMANDS[name](given)
    done = invoke(*words, "--html", str(page), "--redact", "--color", "never")
    assert done.exception is None, done.output
    assert done.stdout.strip()
    assert f"page written: {page}" in done.stderr
    text = page.read_text(encoding="utf-8")
    elements = read(text)
    assert by_id(elements, "verdict").text.split()
    assert re.search(r"\b[0-9a-f]{64}\b", by_id(elements, "inputs").text), "each input has its checksum"
    held = _json(elements)
    assert [name for name in PLANTED if name in done.stdout + text + held] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["acmecorp", "report.html"]
    if name not in {"topo check", "topo predict", "topo what-if"}:
        assert Tokens(KEY.encode()).host(HOST) in text + held


def _json(elements: list[Element]) -> str:
    """The JSON of a page as text, once it is seen to be that of a command of ours."""
    held = data_of(elements)
    assert held["schema_version"] == VERSIONS["diagnose" if "verdict" in held else "result"]
    assert held["tool"]["name"] == "topodiag"
    return json.dumps(held, ensure_ascii=False)


def invoke(*args: str) -> Result:
    return CliRunner().invoke(cli, args, obj=Outcome())


def test_without_redact_the_page_names_the_machine(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    invoke("bench", "read", sweep(tmp_path), "--html", str(page))
    elements = read(page.read_text(encoding="utf-8"))
    assert HOST in by_id(elements, "nodes").text
    assert f"no route to {OTHER}" in _json(elements)


AUDIT = ("place", "audit", "--nodes", "4", "--leaf", "2", "--tp", "8", "--rule", "cyclic")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (AUDIT, ("Could be", "groups split")),
        (("logs", "fixture:split-tensor-groups"), ("2 of 2 groups split", "Waits")),
    ],
)
def test_a_bad_placement_is_drawn_beside_a_better_one(
    tmp_path: Path, argv: tuple[str, ...], words: tuple[str, ...]
) -> None:
    page = tmp_path / "report.html"
    invoke(*argv, "--html", str(page))
    shown = by_id(read(page.read_text(encoding="utf-8")), "placement").text
    assert [word for word in (*words, "no group is split") if word not in shown] == []


def test_a_job_that_is_well_placed_has_no_map_on_its_page(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert "page written" not in invoke("logs", log(tmp_path), "--html", str(page), "--quiet").output
    assert "placement" not in {element.attributes.get("id") for element in read(page.read_text(encoding="utf-8"))}


@examples("path", "said")
def test_a_place_that_cannot_be_meant_is_refused_before_any_work(
    path: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, output = tmp_path / "dump.xml", tmp_path / "out.txt"
    given.write_text("<system/>")
    code = run(cli, ["scan", str(given), "--html", path.format(input=given, output=output), "--output", str(output)])
    assert code == 2
    assert said in capsys.readouterr().err
    assert given.read_text() == "<system/>"


def test_lines_that_speak_against_a_cause_stand_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    case = FIXTURES.parent / "incidents" / "one-hot-gpu-paces-all"
    assert run(cli, ["diagnose", str(case), "--html", str(page), "--width", "100"]) == 1
    assert "Against it" in page.read_text()
