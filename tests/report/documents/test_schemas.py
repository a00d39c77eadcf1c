"""Documents: schemas that are made of types, and JSON of any value."""

import io
import json
from importlib.resources import files
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import build_schemas as schemas
from topodiag.report.documents.from_model import READ_FROM, VERSIONS, plain, schema, write_json
from topodiag.words.own_data import own_data

FOLDER = files("topodiag.report") / "schema"


def test_the_published_schemas_are_alike_in_what_they_share() -> None:
    published = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.iterdir()}
    assert published == dict(schemas.files()), "run python tools/build_schemas.py"


@pytest.mark.parametrize("name", VERSIONS)
def test_each_schema_is_itself_valid_and_is_of_its_version(name: str) -> None:
    published = schema(name)
    jsonschema.Draft202012Validator.check_schema(published)
    major = VERSIONS[name].partition(".")[0]
    assert published["$id"] == f"urn:topodiag:schema:{name}:{VERSIONS[name]}"
    assert f'"pattern": "^{major}\\\\.[0-9]+$"' in json.dumps(published)


def test_every_document_has_the_common_keys() -> None:
    documents = {title: part for name in VERSIONS for title, part in schema(name)["$defs"].items()}
    for title, part in documents.items():
        if title.endswith("Document"):
            assert {"schema_version", "tool", "inputs", "findings", "not_observed"} <= set(part["required"]) | (
                set(part["properties"]) if title == "CollectDocument" else set()
            )
            assert next(iter(part["properties"])) == "schema_version"


def test_a_key_that_is_read_from_elsewhere_is_one_of_a_schema() -> None:
    keys: dict[str, set[str]] = {}
    for name in VERSIONS:
        for title, part in schema(name)["$defs"].items():
            keys.setdefault(title, set()).update(part.get("properties", ()))
    for title, paths in own_data(READ_FROM).items():
        assert set(paths) <= keys[title], title


# --- documents are written as strict JSON in ASCII, whatever numbers and texts are in them


def written(document: dict[str, Any]) -> str:
    stream = io.StringIO()
    write_json(document, stream)
    return stream.getvalue()


@given(st.text(), st.floats())
def test_any_text_and_number_give_strict_json_in_ascii(text: str, value: float) -> None:
    content = written({"text": text, "value": {"deep": [value]}, "pair": (value, 1.0)})
    assert content.isascii()

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(content, parse_constant=refuse)["text"] == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), np.float64("nan")])
def test_what_json_has_no_word_for_is_null(value: float) -> None:
    assert plain({"text": "", "value": value, "pair": (value, 2.0)}) == {"text": "", "value": None, "pair": [None, 2.0]}


def test_numbers_of_numpy_are_numbers() -> None:
    document = plain({"text": "", "value": [np.int64(3), np.float64(0.5), np.bool_(True)]})
    assert document["value"] == [3, 0.5, True]
    assert [type(each) for each in document["value"]] == [int, float, bool]


def test_numbers_are_spelt_as_python_spells_them() -> None:
    assert '"value": 1e-05' in written({"text": "", "value": 1e-05})
