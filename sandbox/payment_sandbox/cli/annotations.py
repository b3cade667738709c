"""Findings in machine formats: GitHub annotations, and SARIF for code scanning tools."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.version import __version__

if TYPE_CHECKING:
    from payment_sandbox import judge

TEXT: Final = "text"
JSON: Final = "json"
GITHUB: Final = "github"
SARIF: Final = "sarif"
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
ESCAPES: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
TITLE_ESCAPES: Final = {**ESCAPES, ":": "%3A", ",": "%2C"}

format_option = click.option(
    "--format",
    "form",
    type=click.Choice([TEXT, JSON, GITHUB, SARIF]),
    default=TEXT,
    show_default=True,
    help="github: workflow annotations; sarif: code scanning results.",
)


class Annotation(NamedTuple):
    """A finding: a stable id (such as a rule), the problem and the advice."""

    id: str
    problem: str
    advice: str = ""
    is_hint: bool = False

    @classmethod
    def of(cls, finding: "judge.Finding", test: str = "") -> "Annotation":
        """Return a finding of the review with its order, its test (the name of its project) and its risk."""
        order = f"Order {finding.order_id}." if finding.order_id is not None else ""
        risk = f"Risk: {finding.risk}." if finding.risk else ""
        named = f"Test: {test}." if test else ""
        advice = "\n".join(filter(None, (finding.advice, order, named, risk)))
        return cls(finding.rule, finding.problem, advice, not finding.is_open)

    @property
    def text(self) -> str:
        """The problem and the advice, on lines of their own."""
        return "\n".join(filter(None, (self.problem, self.advice)))


def format_findings(annotations: Sequence[Annotation], form: str, tool: str) -> list[str]:
    """Return the findings of a tool as lines of the GitHub or SARIF format."""
    if form == GITHUB:
        return list(map(_format_annotation, annotations))
    return json.dumps(_sarif_report(annotations, tool), indent=2).split("\n")


def _format_annotation(annotation: Annotation) -> str:
    level = "notice" if annotation.is_hint else "error"
    return f"::{level} title={_escape(annotation.id, TITLE_ESCAPES)}::{_escape(annotation.text, ESCAPES)}"


def _escape(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(letter, letter) for letter in text)


def _sarif_report(annotations: Sequence[Annotation], tool: str) -> dict[str, Any]:
    driver = {
        "name": f"payment-sandbox {tool}",
        "version": __version__,
        "rules": list(_rule_descriptions(annotations)),
    }
    results = [
        {
            "ruleId": each.id,
            "level": "note" if each.is_hint else "error",
            "message": {"text": each.text},
            "partialFingerprints": {"finding/v1": f"{each.id} {each.problem}"},
        }
        for each in annotations
    ]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _rule_descriptions(annotations: Iterable[Annotation]) -> Iterable[dict[str, Any]]:
    texts = rule_texts()
    for name in dict.fromkeys(each.id for each in annotations):
        yield {"id": name, "shortDescription": {"text": texts.get(name, name.replace("-", " "))}}
