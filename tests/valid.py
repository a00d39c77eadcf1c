"""Documents held to their JSON schemas; each schema is itself checked once in a worker, which costs more than to hold a
document to it."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema


def assert_valid(document: object, schema: Mapping[str, Any]) -> None:
    """Raises jsonschema.ValidationError with what is most amiss, jsonschema.SchemaError where the schema is."""
    error = jsonschema.exceptions.best_match(_validator(json.dumps(schema)).iter_errors(document))
    if error is not None:
        raise error


@cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    loaded = json.loads(schema)
    jsonschema.Draft202012Validator.check_schema(loaded)
    return jsonschema.Draft202012Validator(loaded)
