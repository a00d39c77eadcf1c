"""Results: tables with their documented columns, one line for people, and a page that runs nothing foreign."""

from dataclasses import replace

import defusedxml.ElementTree as Xml
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topodiag
from tests.report import machines
from tests.tables import examples
from topodiag.api.html import page_of
from topodiag.api.results import Answer, Diagnosis, UnknownTableError
from topodiag.api.tables import DTYPES, TABLES, Part
from topodiag.model.errors import TopodiagError
from topodiag.model.result import Result
from topodiag.report.table_files import Table, columns

SICK = Diagnosis(machines.sick())
EMPTY = Diagnosis(Result())
ALL = [(kind, name, table) for kind, tables in TABLES.items() for name, table in tables.items()]


@pytest.mark.parametrize(("kind", "name", "table"), ALL, ids=[f"{kind}-{name}" for kind, name, _ in ALL])
def test_every_column_is_documented_once(kind: str, name: str, table: Table) -> None:
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names)
    assert all(column.about.endswith((".", "?")) for column in table.columns), name
    units = {"_gbs": "GB/s", "_gbps": "Gb/s", "_us": "us", "_ms": "ms", "_percent": "%"}
    for column in table.columns:
        wanted = next((unit for end, unit in units.items() if column.name.endswith(end)), column.unit)
        assert column.unit == wanted, f"{kind} {name} {column.name}"


@pytest.mark.parametrize("answer", [SICK, EMPTY], ids=["sick", "empty"])
def test_every_table_has_its_columns_and_types_with_and_without_rows(answer: Answer) -> None:
    for name, table in answer.known.items():
        rows = answer.table(name)
        assert list(rows.columns) == [column.name for column in table.columns]
        assert [str(kind) for kind in rows.dtypes] == [
            str(pd.Series([], dtype=DTYPES[column.kind]).dtype) for column in table.columns
        ]


def test_unknown_is_missing_and_known_is_a_number() -> None:
    gpus = SICK.table("gpus")
    row = gpus[gpus["gpu"] == 3].iloc[0]
    assert (row["nvlinks_active"], row["nvlinks_expected"], row["nvlink_gbs_each"]) == (12, 18, 26.562)
    blind = Diagnosis(machines.only_matrix()).table("gpus")
    assert blind["nvlinks_active"].isna().all()


def test_findings_name_where_and_what_they_cost() -> None:
    row = SICK.table("findings").iloc[0]
    assert (row["id"], row["severity"], row["gpus"], row["gbs_lost"]) == ("NVL001", "error", "GPU3", 159.4)


def test_paths_of_a_node_are_rows() -> None:
    paths = topodiag.scan("fixture:dgx-h100-healthy").table("paths")
    pair = paths[(paths["from"] == "GPU0") & (paths["to"] == "GPU1")]
    assert pair["type"].tolist() == ["NVL"]


def test_a_wrong_name_is_one_clear_error() -> None:
    with pytest.raises(UnknownTableError) as raised:
        SICK.table("gpu")
    assert str(raised.value).startswith("no table 'gpu': the tables are findings, outcomes, nodes, gpus")
    assert isinstance(raised.value, KeyError)
    assert isinstance(raised.value, TopodiagError)
    assert SICK.tables() == tuple(SICK.known)


def test_a_repr_is_one_short_line() -> None:
    assert repr(SICK).startswith("<topodiag: gpu-002: 2 errors, 1 warning: NVL001 GPU3 has 12 of 18")
    assert repr(EMPTY) == "<topodiag: no node, job or run in the evidence: no findings>"
    assert repr(topodiag.predict("fixture:dgx-h100-healthy")).startswith("<topodiag: NCCL 2.28 on fixture:")


@given(st.text())
def test_a_repr_of_any_names_is_one_line(text: str) -> None:
    content = repr(Diagnosis(Result(nodes=(replace(machines.h100(), host=text),), findings=(hostile(text),))))
    assert len(content) <= 120
    assert len(content.splitlines()) == 1


def hostile(text: str):  # type: ignore[no-untyped-def]
    return machines.finding(message=text, fix=(text,))


@examples("text")
def test_the_page_runs_nothing_foreign(text: str) -> None:
    content = page_of(Diagnosis(Result(nodes=(replace(machines.h100(), host=text),), findings=(hostile(text),))))
    assert "<script" not in content
    assert "<img" not in content
    assert "\x1b" not in content
    assert "49" not in content or "49" in text


@given(st.text())
def test_the_page_is_well_formed_whatever_is_in_it(text: str) -> None:
    content = Diagnosis(Result(nodes=(replace(machines.h100(), host=text),), findings=(hostile(text),)))._repr_html_()
    assert Xml.fromstring(content).tag == "div"


def test_the_page_has_the_worst_findings_and_counts_the_others() -> None:
    many = Diagnosis(Result(findings=tuple(hostile(f"fault {number}") for number in range(30))))
    text = many._repr_html_()
    assert text.count("<tr><td>") == 20
    assert "10 more findings" in text
    assert "tables: findings, " in text


def test_a_column_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="a column is text, names, steps, whole, number, truth"):
        columns("rank integer: Rank.")


def test_a_part_says_which_values_it_has() -> None:
    part = Part("n1", {"index": 3})
    assert (part.owner, part.index) == ("n1", 3)
    with pytest.raises(AttributeError, match="no value 'speed': there are index"):
        _ = part.speed
