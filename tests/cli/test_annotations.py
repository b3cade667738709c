"""Findings as annotations of GitHub, and as SARIF."""

import json

import pytest
from jsonschema import Draft7Validator

from payment_sandbox.cli.annotations import Annotation, format_findings
from tests.support.commands import run
from tests.support.driver import Sandbox, card


@pytest.fixture
def reviewed(sandbox: Sandbox) -> list[str]:
    """The command that reviews a project with a mistake and a hint."""
    for _ in range(2):
        sandbox.create(card(), merchant_order_id="shop-1", custommer=1)
    return ["review", "--url", sandbox.url, "--key", sandbox.key]


def test_annotations(reviewed: list[str]) -> None:
    """One line a finding, with its rule as the title."""
    ran = run(*reviewed, "--format", "github")
    assert ran.returncode == 1
    lines = ran.stdout.splitlines()
    assert any(
        line.startswith(
            "::error title=ORD-07::Two orders have the number 'shop-1', and a customer could pay more than one%0A"
        )
        for line in lines
    )
    assert all(line.startswith(("::error title=", "::notice title=")) for line in lines)


def test_sarif(reviewed: list[str]) -> None:
    """With the texts of the rules, and the same fingerprint each time."""
    ran = run(*reviewed, "--format", "sarif")
    document = json.loads(ran.stdout)
    Draft7Validator(SHAPE).validate(document)
    (found,) = document["runs"]
    ids = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    assert {result["ruleId"] for result in found["results"]} == set(ids)
    assert "ORD-07" in ids
    assert run(*reviewed, "--format", "sarif").stdout == ran.stdout


TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
SHAPE = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {"type": "object", "required": ["driver"]},
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": TEXT,
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_json_and_text(reviewed: list[str]) -> None:
    """As ever."""
    assert json.loads(run(*reviewed, "--format", "json").stdout) == json.loads(
        run(*reviewed, "--json").stdout
    )
    assert run(*reviewed, "--format", "text").stdout == run(*reviewed).stdout


def test_no_line_can_be_forged() -> None:
    """By a text with a line feed, or a title with a colon."""
    noted = [Annotation("a:b,c", "100 %\n::error::forged\r")]
    assert format_findings(noted, "github", "x") == ["::error title=a%3Ab%2Cc::100 %25%0A::error::forged%0D"]
