"""Findings as annotations for GitHub and as SARIF."""

import json
import subprocess
from collections.abc import Callable

import pytest

from payment_sandbox.cli.annotations import Annotation, format_findings
from tests.support.driver import Sandbox, card

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def review_command(sandbox: Sandbox) -> list[str]:
    """The command that reviews a project with a mistake and a hint; the project is named after a test."""
    sandbox.patch("/control/project/", {"name": "a basket is paid once"})
    for _ in range(2):
        sandbox.create(card(), merchant_order_id="shop-1", custommer=1)
    return ["review", "--url", sandbox.url, "--key", sandbox.key]


def test_annotations(review_command: list[str], run_here: Run) -> None:
    """Each finding is a line with its rule as the title."""
    result = run_here(*review_command, "--format", "github")
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert any(
        line.startswith(
            "::error title=ORD-07::Two orders have the number 'shop-1', and a customer could pay more than one%0A"
        )
        for line in lines
    )
    assert all(line.startswith(("::error title=", "::notice title=")) for line in lines)
    assert all("%0ATest: a basket is paid once" in line for line in lines)
    mistakes = [line for line in lines if "title=ORD-07" in line]
    assert all("%0AOrder " in line and "%0ARisk: " in line for line in mistakes)


def test_sarif(review_command: list[str], run_here: Run) -> None:
    """The document contains the texts of the rules and is reproducible."""
    result = run_here(*review_command, "--format", "sarif")
    document = json.loads(result.stdout)
    assert document["version"] == "2.1.0"
    (review_run,) = document["runs"]
    ids = [rule["id"] for rule in review_run["tool"]["driver"]["rules"]]
    assert {each["ruleId"] for each in review_run["results"]} == set(ids)
    assert "ORD-07" in ids
    assert all(each["message"]["text"] for each in review_run["results"])
    assert {each["level"] for each in review_run["results"]} <= {"error", "note"}
    (mistake,) = (each for each in review_run["results"] if each["ruleId"] == "ORD-07")
    for part in ("\nOrder ", "\nTest: a basket is paid once.", "\nRisk: "):
        assert part in mistake["message"]["text"]
    assert run_here(*review_command, "--format", "sarif").stdout == result.stdout


def test_json_and_text(review_command: list[str], run_here: Run) -> None:
    """``--format json`` equals ``--json``, and text is the default."""
    assert json.loads(run_here(*review_command, "--format", "json").stdout) == json.loads(
        run_here(*review_command, "--json").stdout
    )
    text = run_here(*review_command).stdout
    assert run_here(*review_command, "--format", "text").stdout == text
    section = "docs mistakes#after-a-lost-response"
    url = review_command[2]
    assert f"See payment-sandbox {section} or {url}/docs/mistakes/#after-a-lost-response\n" in text


def test_no_line_can_be_forged() -> None:
    """Line feeds in texts and colons in titles are escaped."""
    annotations = [Annotation("a:b,c", "100 %\n::error::forged\r")]
    assert format_findings(annotations, "github", "x") == [
        "::error title=a%3Ab%2Cc::100 %25%0A::error::forged%0D"
    ]
