"""What the published schemas share is equal in all, and every document has the keys that all share."""

import json
from importlib.resources import files

import jsonschema
import pytest

from tools import build_schemas as schemas
from topodiag.report.documents.from_model import READ_FROM, VERSIONS, schema
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
