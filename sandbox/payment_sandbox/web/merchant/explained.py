"""The Sandbox-Explain header of refused calls: the rule, and what is possible now."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from flask import Response, request

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.forms.fields import NO_TIME
from payment_sandbox.operations.act import possible_now
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.projects.project import Project
from payment_sandbox.web.carried import exchange
from payment_sandbox.web.errors import RATE_LIMITED, masking
from payment_sandbox.web.routes import current_facts

EXPLAIN: Final = "Sandbox-Explain"
LENGTH_MAX: Final = 2000
RULES_SHOWN_MAX: Final = 5
FAULT: Final = "CTL-23"

RULE_OF_STATUS: Final = {401: "AUTH-01", 404: "SET-08", 405: "SET-08", 413: "SET-09", 415: "SET-09"}
MALFORMED: Final = "SET-08"
UNKNOWN_KEY: Final = "SET-13"


def explain(response: Response, project: Project | None) -> list[str]:
    """Add a header that names the rule and what is possible now; return the rules."""
    here = exchange()
    violations = here.violations
    rules = _rules(response.status_code, violations)
    if project is not None and here.rule is None:
        here.rule = rules[0]
    texts = rule_texts()
    shown = "; ".join(f"{rule} {texts.get(rule, '')}" for rule in rules[:RULES_SHOWN_MAX])
    possible = _possible(response, violations, project)
    line = masking().text(f"{shown}; possible now: {possible}")
    plain = "".join(letter if " " <= letter <= "~" else "?" for letter in line)
    response.headers[EXPLAIN] = plain if len(plain) <= LENGTH_MAX else f"{plain[:LENGTH_MAX]}..."
    return rules


def rule_of(rules: Mapping[str, str], violation: Violation) -> str:
    """The rule that a violation breaks: its own, else that of its path or of the nearest parent path."""
    if violation.rule is not None:
        return violation.rule
    if violation.message.startswith("is not a known key"):
        return UNKNOWN_KEY
    if violation.message == NO_TIME:
        return "SET-21"
    path = re.sub(r"\[\d+\]", "", violation.path)
    while path and path not in rules:
        path = path.rpartition(".")[0]
    return rules.get(path, MALFORMED)


def _rules(status: int, violations: Sequence[Violation]) -> list[str]:
    if _is_asked_for(status):
        return [FAULT]
    refused = exchange().rule
    if refused is not None:
        return [refused]
    facts = current_facts()
    rules = facts.rules if facts is not None else {}
    found = [rule_of(rules, violation) for violation in violations]
    if status == 401 and request.headers.get("Authorization"):
        found = ["AUTH-02"]
    if status == 404 and not request.path.startswith("/v1/"):
        found = ["VER-02"]
    return list(dict.fromkeys(found)) or [RULE_OF_STATUS.get(status, MALFORMED)]


def _is_asked_for(status: int) -> bool:
    """Whether this refusal comes from a configured fault."""
    fault = exchange().fault
    return fault.get("status") == status or (status == RATE_LIMITED and "rate_limit" in fault)


def _possible(response: Response, violations: Sequence[Violation], project: Project | None) -> str:
    if project is None:
        return "any call with the API key of a project as the user name of HTTP Basic"
    if _is_asked_for(response.status_code):
        return "the same request, once the configured fault is over"
    if violations:
        mended = "; ".join(map(_mended, violations))
        return (
            f"{mended}; {_possible_with_order(project)}"
            if "order_id" in (request.view_args or {})
            else mended
        )
    if "Allow" in response.headers:
        return response.headers["Allow"]
    return _possible_with_order(project)


def _mended(violation: Violation) -> str:
    """The allowed values if there is a list of them, else what to fix."""
    where = violation.path or "the request"
    if violation.allowed:
        return f"{where}: one of {', '.join(map(str, violation.allowed))}"
    return f"fix {where}"


def _possible_with_order(project: Project) -> str:
    order_id = (request.view_args or {}).get("order_id")
    if order_id is None:
        return "another request"
    order = project.epoch.store.order(order_id)
    if order is None:
        newest = project.epoch.store.newest_order_id
        return f"read {newest}, the newest order here" if newest is not None else "create an order"
    return f"{', '.join(possible_now(order))}; its ETag is {project.epoch.etag(order)}"
