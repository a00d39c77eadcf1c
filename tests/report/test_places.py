"""Files of the evidence are named relative to what the user gave, in all that is printed or sent on."""

import shutil
from pathlib import Path

import pytest

from tests.shown import ROOT
from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.model.finding import Input
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.report.places import Places

TWO = ("/data/run7/logs/a.log", "/data/run7/n1.tar.gz")
TEXTS = [
    (TWO, "/data/run7/logs/a.log:12 said", "logs/a.log:12 said"),
    (TWO, "(/data/run7/n1.tar.gz/json/nvml.json) x", "(n1.tar.gz/json/nvml.json) x"),
    (TWO, "NCCL_TOPO_FILE=/data/run7/other.xml", "NCCL_TOPO_FILE=/data/run7/other.xml"),
    (TWO, "/data/run70/logs/a.log", "/data/run70/logs/a.log"),
    (TWO, '"path":"/data/run7/n1.tar.gz","kind"', '"path":"n1.tar.gz","kind"'),
    (("/data/run7",), "/data/run7/logs/a.log: not read", "logs/a.log: not read"),
    (("/data/run7/",), "/data/run7/logs/a.log: not read", "logs/a.log: not read"),
    (("/data/*/logs",), "/data/run7/logs/a.log: not read", "run7/logs/a.log: not read"),
    (("in/run7",), "in/run7/logs/a.log: not read", "logs/a.log: not read"),
    (("logs",), "it writes logs/a.log", "it writes logs/a.log"),
]


@pytest.mark.parametrize(("given", "text", "shown"), TEXTS)
def test_a_file_is_named_below_what_the_user_gave(given: tuple[str, ...], text: str, shown: str) -> None:
    inputs = (Input("/data/run7/logs/a.log", "log"), Input("in/run7/logs/a.log", "log"), Input("logs/a.log", "log"))
    places = Places(Result(given=given, inputs=inputs))
    assert places.in_text(text) == places.sent(text) == shown


def test_a_command_to_be_typed_keeps_its_path_on_the_terminal_alone() -> None:
    places = Places(Result(given=("/data/run7",), inputs=(Input("/data/run7/a.log", "log"),)))
    text = "/data/run7/hosts: not read; topodiag place audit /data/run7/hosts --tp 8 reads it"
    assert places.in_text(text) == "hosts: not read; topodiag place audit /data/run7/hosts --tp 8 reads it"
    assert "/data" not in places.sent(text)
    assert places.spell(Origin(source="/data/run7/a.log", line=3, text="")) == "a.log:3"


SHOWN = ["incidents/half-the-links-of-one-gpu", "jobs/init-hang", "jobs/split-tensor-groups", "live/exception_rank1",
         "tables/all-reduce-gdr-off", "incidents/libraries-missing-in-one-image"]  # fmt: skip
TYPED = "topodiag "


@pytest.mark.parametrize("command", ["diagnose", "logs", "bench", "scan"])
@pytest.mark.parametrize("name", SHOWN)
def test_no_page_and_no_text_names_an_absolute_path_of_the_evidence(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = shutil.copytree(ROOT / "fixtures" / name, tmp_path / "given" / "here")
    page = tmp_path / "page.html"
    code = run(cli, [command, str(evidence), "-v", "--width", "400", "--html", str(page)])
    if code == 2:
        return
    assert str(tmp_path) not in page.read_text(encoding="utf-8")
    assert [line for line in capsys.readouterr().out.splitlines() if str(tmp_path) in line.partition(TYPED)[0]] == []
