"""Findings for machines: annotations of GitHub, and SARIF for everything that reads code scanning results."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import click

from payment_sandbox.version import __version__

TEXT: Final = "text"
JSON: Final = "json"
GITHUB: Final = "github"
SARIF: Final = "sarif"
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
ESCAPED: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
ESCAPED_IN_TITLES: Final = {**ESCAPED, ":": "%3A", ",": "%2C"}

format_option = click.option(
    "--format",
    "form",
    type=click.Choice([TEXT, JSON, GITHUB, SARIF]),
    default=TEXT,
    show_default=True,
    help="github: annotations of a workflow; sarif: results of code scanning.",
)


class Noted(NamedTuple):
    """A finding: a stable id, such as that of a rule, what is wrong, and what to do about it."""

    id: str
    problem: str
    advice: str = ""
    is_hint: bool = False

    @property
    def text(self) -> str:
        """Both in one."""
        return "\n".join(filter(None, (self.problem, self.advice)))


def printed(noted: Sequence[Noted], form: str, tool: str) -> list[str]:
    """The findings of a tool in one of the forms that are neither text nor JSON."""
    if form == GITHUB:
        return list(map(_annotation, noted))
    return json.dumps(_sarif(noted, tool), indent=2).split("\n")


def _annotation(noted: Noted) -> str:
    level = "notice" if noted.is_hint else "error"
    return f"::{level} title={_escaped(noted.id, ESCAPED_IN_TITLES)}::{_escaped(noted.text, ESCAPED)}"


def _escaped(text: str, escaped: dict[str, str]) -> str:
    return "".join(escaped.get(letter, letter) for letter in text)


def _sarif(noted: Sequence[Noted], tool: str) -> dict[str, Any]:
    driver = {"name": f"payment-sandbox {tool}", "version": __version__, "rules": list(_rules(noted))}
    results = [
        {
            "ruleId": each.id,
            "level": "note" if each.is_hint else "error",
            "message": {"text": each.text},
            "partialFingerprints": {"finding/v1": f"{each.id} {each.problem}"},
        }
        for each in noted
    ]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _rules(noted: Iterable[Noted]) -> Iterable[dict[str, Any]]:
    from payment_sandbox.fidelity.ledger import rule_texts

    texts = rule_texts()
    for name in dict.fromkeys(each.id for each in noted):
        yield {"id": name, "shortDescription": {"text": texts.get(name, name.replace("-", " "))}}
