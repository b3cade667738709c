"""Validation of responses against the API description."""

import json
import re
from functools import cache
from typing import Any

import requests
from jsonschema import Draft202012Validator

from tests.support.projects import openapi_description

EXPLAINED = re.compile(r"[A-Z]+-\d\d \S.*; possible now: \S.*")
CLOSED = ("Order", "Transaction", "OrderLine", "Event", "LineDetail", "Amounts", "Qr", "Error", "Violation")


@cache
def description() -> dict[str, Any]:
    """Return the API description, made strict: undocumented response keys are errors."""
    described: dict[str, Any] = json.loads(openapi_description())
    for name in CLOSED:
        described["components"]["schemas"][name]["additionalProperties"] = False
    return described


@cache
def _validators() -> list[tuple[str, re.Pattern[str], dict[str, Draft202012Validator], frozenset[str]]]:
    components = {"components": description()["components"]}
    validators = []
    paths = description()["paths"]
    for path in sorted(paths, key=lambda path: path.count("{")):  # a path without names takes precedence
        operations = paths[path]
        pattern = re.compile(re.sub(r"\{[a-z_]+\}", "[^/]+", path).rstrip("/") + "/?")
        for method, operation in operations.items():
            by_status = {
                status: Draft202012Validator(
                    {**answer["content"]["application/json"]["schema"], **components}
                )
                for status, answer in operation["responses"].items()
                if "application/json" in answer.get("content", {})
            }
            validators.append((method.upper(), pattern, by_status, frozenset(operation["responses"])))
    return validators


def check_answer(method: str, path: str, answer: requests.Response) -> None:
    """Fail if a response differs from the description, or if an error does not have the standard shape."""
    bare = path.partition("?")[0]
    is_refused = answer.status_code >= 400
    is_explained = EXPLAINED.fullmatch(answer.headers.get("Sandbox-Explain", "")) is not None
    assert is_explained == (is_refused and bare.startswith("/v1")), answer.headers
    if is_refused:
        assert answer.json().keys() == {"error"}, answer.text
    for known_method, pattern, by_status, statuses in _validators():
        if known_method == method and pattern.fullmatch(bare):
            validator = by_status.get(str(answer.status_code))
            if validator is not None:
                validator.validate(answer.json())
            elif answer.status_code in (303, 304):
                assert str(answer.status_code) in statuses, f"{method} {bare}: {answer.status_code}"
            elif answer.status_code not in (405, 429) and answer.status_code < 500:
                raise AssertionError(f"{method} {bare}: {answer.status_code} is not described")
            return
