"""The functions of the API take paths, several paths or bytes, and answer as the commands do."""

import io
import json
import subprocess
import sys
from dataclasses import fields
from inspect import Parameter, signature
from pathlib import Path

import pytest
from click.testing import CliRunner

import topodiag
from tests.evidence.layout.test_job_file import MEGATRON
from topodiag.api.calls import PLACEMENT, TRAINING
from topodiag.app.case.placement import PlaceOptions
from topodiag.cli import cli
from topodiag.cli.errors import Outcome
from topodiag.cli.model.step_options import MODEL_OPTIONS, TRAINING_OPTIONS
from topodiag.model.errors import InputError
from topodiag.model.layout import NAMES, LayoutError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FAULTY = "fixture:dgx-h100-gpu3-12of18-nvlink"
HEALTHY = "fixture:dgx-h100-healthy"
LOGS = str(FIXTURES / "jobs" / "socket-fallback" / "logs")
TOPOLOGY = FIXTURES / "topo" / "dgx-h100-healthy" / "topo.xml"
LAYOUT = {"system": "dgx-h100", "nodes": 4, "leaf": 2, "tp": 8, "pp": 2, "rule": "cyclic"}
TABLE = """\
# nccl-tests version 2.17.8 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
     1048576        262144     float     sum      -1    60.00   17.47   30.58       0    60.00   17.47   30.58       0
   134217728      33554432     float     sum      -1   600.00  223.69  391.46       0   600.00  223.69  391.46       0
"""


def printed(*args: str) -> str:
    """What the command prints."""
    done = CliRunner().invoke(cli, [*args, "--format", "json"], obj=Outcome())
    return done.stdout


def test_the_module_shows_the_functions_and_loads_nothing_heavy_nor_does_a_diagnosis_of_a_node() -> None:
    code = (
        "import sys, topodiag; print(*dir(topodiag)); heavy = {'pandas', 'pyarrow', 'click', 'jinja2'};"
        "print(*sorted((heavy | {'numpy', 'msgspec'}) & set(sys.modules)));"
        f"made = topodiag.diagnose({HEALTHY!r}); repr(made); print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown = done.stdout.splitlines()
    assert shown == ["InputError TopodiagError __version__ audit bench diagnose logs predict scan solve", "", ""]


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("diagnose", {*NAMES, "source", "job", "order", "training"}),
        ("logs", {*NAMES, "source", "workers", "dask", "flight", "save", "order"}),
        ("audit", {*NAMES, *PLACEMENT, "source", "training"}),
        ("solve", {*NAMES, *PLACEMENT, "source", "training", "launcher"}),
    ],
)
def test_a_notebook_completes_every_option_by_its_name(call: str, names: set[str]) -> None:
    shown = signature(getattr(topodiag, call)).parameters
    assert set(shown) == names
    assert all(each.kind is not Parameter.VAR_KEYWORD for each in shown.values())


def test_the_options_of_a_placement_are_those_of_the_use_case() -> None:
    known = {field.name for field in fields(PlaceOptions)} - {"layout", "least_ranks", "left"}
    assert known == set(PLACEMENT) - {"job", "order"}


def test_an_option_that_is_none_is_one_that_is_not_given() -> None:
    assert (
        topodiag.audit(**LAYOUT, hostfile=None, job=None, cp=None)
        .table("map")
        .equals(topodiag.audit(**LAYOUT).table("map"))
    )


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'diagnoze'"):
        topodiag.diagnoze  # noqa: B018 - the access is what is tested


def test_a_path_several_paths_and_a_pathlike_are_taken() -> None:
    one = topodiag.diagnose(FAULTY)
    assert [finding.id for finding in one.findings] == ["NVL001"]
    assert len(topodiag.diagnose([FAULTY, HEALTHY]).nodes) == 2
    assert topodiag.predict(TOPOLOGY).accepted


def test_bytes_are_the_content_of_one_file() -> None:
    topology = topodiag.predict(TOPOLOGY.read_bytes(), nodes=2)
    named = topodiag.predict(TOPOLOGY, nodes=2)
    assert topology.table("choices").equals(named.table("choices"))
    assert topology.topology.name == "-"
    run = topodiag.bench(TABLE.encode(), system="dgx-h100", nodes=1)
    assert [benchmark.run.collective for benchmark in run.benchmarks] == ["all_reduce"]


def test_a_layout_is_taken_by_its_content() -> None:
    hosts = b"node001 slots=8\nnode002 slots=8\n"
    layout = topodiag.audit(hosts, system="dgx-h100", tp=8)
    assert layout.table("map")["host"].unique().tolist() == ["node001", "node002"]
    solved = topodiag.solve(hosts, system="dgx-h100", tp=8)
    again = topodiag.audit(solved.to_json().encode(), system="dgx-h100", tp=8)
    assert again.table("map").equals(layout.table("map"))


def test_bytes_leave_standard_input_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"untouched"))
    monkeypatch.setattr(sys, "stdin", stdin)
    topodiag.bench(TABLE.encode(), system="dgx-h100", nodes=1)
    assert stdin.read() == "untouched"


@pytest.mark.parametrize("source", [7, [b"bytes"], [TOPOLOGY, None]])
def test_what_is_no_path_is_a_type_error(source: object) -> None:
    with pytest.raises(TypeError):
        topodiag.diagnose(source)  # type: ignore[arg-type]


def test_bad_evidence_is_an_input_error_with_a_reason() -> None:
    with pytest.raises(InputError):
        topodiag.diagnose("no-such-file")
    with pytest.raises(InputError):
        topodiag.bench(b"")


def test_a_scan_is_what_scan_prints() -> None:
    assert topodiag.scan(FAULTY).to_json() == printed("scan", FAULTY)


def test_a_diagnosis_is_what_diagnose_prints() -> None:
    assert topodiag.diagnose(FAULTY).to_json() == printed("diagnose", FAULTY)
    assert topodiag.scan(FAULTY).findings == topodiag.diagnose(FAULTY).findings


def test_logs_are_what_the_command_prints() -> None:
    diagnosis = topodiag.logs(LOGS, workers=1)
    assert diagnosis.to_json() == printed("logs", LOGS, "--workers", "1")
    assert diagnosis.findings[0].id == "ENV001"


def test_a_declared_layout_reaches_the_job() -> None:
    with pytest.raises(TypeError, match="unknown option 'xp'"):
        topodiag.logs(LOGS, workers=1, xp=8)
    with pytest.raises(LayoutError, match="tp 3"):
        topodiag.logs(LOGS, workers=1, tp=3)


def test_a_prediction_is_what_the_command_prints() -> None:
    topology = topodiag.predict(TOPOLOGY, nodes=2, env={"NCCL_P2P_DISABLE": "1"})
    path = str(TOPOLOGY)
    assert topology.to_json() == printed("topo", "predict", path, "--nodes", "2", "--env", "NCCL_P2P_DISABLE=1")


def test_an_audit_is_what_the_command_prints() -> None:
    options = ("--system", "dgx-h100", "--nodes", "4", "--leaf", "2", "--tp", "8", "--pp", "2", "--rule", "cyclic")
    layout = topodiag.audit(**LAYOUT)
    assert layout.to_json() == printed("place", "audit", *options)
    document = json.loads(layout.to_json())
    assert document["findings"] == document["violations"] != []
    assert topodiag.solve(**LAYOUT).to_json() == printed("place", "solve", *options)


def test_what_is_trained_makes_a_step() -> None:
    bare, trained = topodiag.audit(**LAYOUT), topodiag.audit(**LAYOUT, training={"params": 7e9, "layers": 32})
    assert json.loads(bare.to_json())["step_ms"] is None or bare.to_json() != trained.to_json()
    assert json.loads(trained.to_json())["step_ms"] > 0
    with pytest.raises(TypeError, match="unknown name 'parms' in training"):
        topodiag.audit(**LAYOUT, training={"parms": 7e9})


def test_what_is_trained_has_the_defaults_of_the_command() -> None:
    import click  # noqa: PLC0415

    made = click.command()(lambda: None)
    for option in (MODEL_OPTIONS, TRAINING_OPTIONS):
        option(made)
    given = made.make_context("place", []).params
    assert {name: given[name] for name in TRAINING} == TRAINING


def test_a_layout_has_as_many_ranks_as_are_asked_for() -> None:
    assert topodiag.audit(system="dgx-h100", nodes=4, tp=8, ranks=16).headline.startswith("16 ranks on 2 nodes")


def test_an_option_that_the_command_lacks_is_named() -> None:
    with pytest.raises(TypeError, match="unknown option 'leafs'"):
        topodiag.audit(**LAYOUT, leafs=2)


def test_files_of_a_job_say_its_layout_where_no_argument_does(tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    path.write_text(MEGATRON)
    priced = topodiag.diagnose("fixture:nic-missing", job=path, tp=16, pp=1).result.verdict
    assert priced.causes[0].price.step_share is not None
    assert "70B" not in priced.causes[0].price.step_said
