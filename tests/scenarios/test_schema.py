"""The JSON Schema of scenario files agrees with the loader."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations.choose_scenario import file_schema
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.projects.default_scenario import default_document
from payment_sandbox.projects.settings import check_scenario_settings
from payment_sandbox.scenarios.catalogue import SCHEMA_SUFFIX, ready_folder, scenario_files
from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.loader import load_scenario
from tests.scenarios.wrong_files import WRONG
from tests.support.driver import Sandbox

SCHEMA = file_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
NOT_IN_SCHEMA = {
    "YAML",
    "duplicate",
    "alias",
    "document",
    "file's name",
    "did you mean 'credit-card'?",
    "duration",  # a format, which validators do not check
}
WITH_EVERY_KEY: dict[str, Any] = {
    "name": "everything",
    "description": "Every key once.",
    "settings": {"mode": "live", "aliases": {"my-card": "credit-card"}, "webhook_url": None},
    "rules": [
        {
            "when": {
                "payment_method": ["credit-card", "my-card"],
                "amount": {"gte": 1, "lt": 500},
                "customer": {"email_address": "*@example.com"},
                "merchant_order_id": "a-*",
                "attempt": 2,
            },
            "times": 3,
            "then": {"customer": "pays", "card": "challenge", "after": "PT1M", "reason": "x"},
        },
        {"when": {"payment_method": "wallet-google", "amount": 0}, "then": {"customer": "waits"}},
        {"then": {"credit": {"after": "P2D", "amount": 5}}},
        {"then": {"credit": "never"}},
        {"then": {"screening": "needs-time", "then": "declined"}},
        {"when": {"refund": True}, "then": {"processor": "fails"}},
    ],
    "webhooks": [{"when": {"status": "completed", "attempt": 1}, "then": {"delay": "PT10M"}}],
    "faults": [
        {
            "when": {"method": "POST", "path": "/v1/*", "nth": [1, 3]},
            "then": {"status": 503, "phase": "after"},
        },
        {"when": {"nth": 2}, "then": {"latency": 0.5, "rate_limit": "10/PT1S"}},
    ],
}


def accepts(document: Any) -> bool:
    """Return whether the loader accepts a document."""
    try:
        scenario = load_scenario(document, [*METHOD_NAMES, "my-card"])
        check_scenario_settings(scenario.settings)
    except Invalid:
        return False
    return True


def test_the_schema_file_is_current(sandbox: Sandbox) -> None:
    """The schema file in the scenarios' folder is as ``make docs`` writes it, and as the control API serves it."""
    assert sandbox.get("/control/scenarios/schema/").json() == SCHEMA
    Draft202012Validator.check_schema(SCHEMA)
    file = ready_folder() / f"scenario{SCHEMA_SUFFIX}"
    assert json.loads(file.read_text()) == SCHEMA, "run make docs"
    assert file not in scenario_files(ready_folder())


def test_every_scenario_is_valid() -> None:
    """Ready scenarios, the default scenario and a scenario with every key are valid."""
    ready = [parse_yaml(path.read_text()).data for path in scenario_files(ready_folder())]
    for document in (*ready, default_document(), WITH_EVERY_KEY):
        VALIDATOR.validate(document)
        assert accepts(document)


@pytest.mark.parametrize("text", [text for text, *_, words in WRONG if words not in NOT_IN_SCHEMA])
def test_the_schema_refuses_wrong_files(text: str) -> None:
    """The schema refuses wrong files, except mistakes of YAML, meaning or format."""
    assert not VALIDATOR.is_valid(parse_yaml(text).data)


def value_positions(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the key of every value in a document."""
    keys: Any = node.keys() if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from value_positions(node[key])


VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, -1, 700, 2**53, 1.5, "", "pays", "never", "PT1S", "/v1/", [], [1], {}, [{}]]
)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), value=VALUES)
def test_the_schema_accepts_what_the_loader_accepts(data: st.DataObject, value: Any) -> None:
    """The schema accepts every document that the loader accepts, after any change to a value or key."""
    document = copy.deepcopy(WITH_EVERY_KEY)
    node, key = data.draw(st.sampled_from(list(value_positions(document))))
    if isinstance(node, dict) and data.draw(st.booleans()):
        node[data.draw(st.sampled_from(["extra", "", "status", "reset"]))] = value
    else:
        node[key] = value
    if accepts(document):
        VALIDATOR.validate(document)
