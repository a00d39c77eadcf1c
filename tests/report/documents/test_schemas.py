"""The published schemas are those of the types, and every document has the keys that all share."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import msgspec
import pytest

from tools import build_schemas as schemas

FOLDER = files("topodiag.report") / "schema"
DOCUMENTS = [document for schema in schemas.SCHEMAS for document in schema.documents]


def test_the_published_schemas_are_those_of_the_types() -> None:
    published = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.iterdir()}
    assert published == dict(schemas.files()), "run python tools/build_schemas.py"


@pytest.mark.parametrize("schema", schemas.SCHEMAS, ids=lambda schema: schema.name)
def test_each_schema_is_itself_valid(schema: schemas.Schema) -> None:
    jsonschema.Draft202012Validator.check_schema(schemas.generated(schema))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.__name__)
def test_every_document_has_the_common_keys(document: type[msgspec.Struct]) -> None:
    names = [field.encode_name for field in msgspec.structs.fields(document)]
    assert {"schema_version", "tool", "inputs", "findings", "not_observed"} <= set(names)
    assert names[0] == "schema_version"


def test_a_schema_refuses_a_document_of_another_major() -> None:
    for schema in schemas.SCHEMAS:
        major = schema.version.partition(".")[0]
        assert f'"pattern": "^{major}\\\\.[0-9]+$"' in json.dumps(schemas.generated(schema))
