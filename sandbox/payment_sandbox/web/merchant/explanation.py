"""The header that explains a refusal: the broken rule, and the currently possible calls."""

import re
from collections.abc import Mapping
from typing import Final

from flask import Response

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.forms.fields import COMMON_MESSAGES, ZERO_PERIOD
from payment_sandbox.operations.act import possible_calls
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.order_tables import FIELD_RULES
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_bodies import MERCHANT_PATHS

EXPLAIN_HEADER: Final = "Sandbox-Explain"
LENGTH_MAX: Final = 2000
RULES_SHOWN_MAX: Final = 5
FAULT_RULE: Final = "CTL-23"

RULE_BY_STATUS: Final = {401: "AUTH-01", 404: "SET-08", 405: "SET-08", 413: "SET-09", 415: "SET-09"}
REQUIRED_RULES: Final = {"currency": "ORD-02", "amount": "ORD-04", "transactions.payment_method": "TRQ-01"}
MALFORMED_RULE: Final = "SET-08"
UNKNOWN_KEY_RULE: Final = "SET-13"


def require_own_rules(rules: Mapping[str, str]) -> None:
    """Refuse fields that share a rule, and rules that the ledger lacks.

    A rule's text explains a wrong value, so it must not describe an unrelated field. Fields may share a rule
    only if its text names them, or if one field is part of the other.

    Raises:
        TypeError: the message names the rule and the fields.
    """
    texts, paths = rule_texts(), dict[str, str]()
    for path, rule in rules.items():
        if rule not in texts:
            raise TypeError(f"the rule of {path} is {rule}, which is not in fidelity/rules.tsv")
        other = paths.setdefault(rule, path)
        if other != path and not path.startswith(f"{other}.") and not _mentions(texts[rule], path, other):
            raise TypeError(
                f"{rule} is the rule of both {other} and {path}: "
                f"give {path} a rule of its own in fidelity/rules.tsv"
            )


def _mentions(text: str, *paths: str) -> bool:
    return {path.rpartition(".")[2] for path in paths} <= set(re.findall(r"\w+", text))


require_own_rules(FIELD_RULES)


def explain(call: Call, response: Response, project: Project | None) -> None:
    """Add a header with the rule and the possible calls."""
    rules = _broken_rules(call, response.status_code)
    if project is not None and call.notes.rule is None:
        call.notes.rule = rules[0]
    texts = rule_texts()
    shown = "; ".join(f"{rule} {texts.get(rule, '')}" for rule in rules[:RULES_SHOWN_MAX])
    possible = _possible_calls(call, response, project)
    line = call.masking.mask_text(f"{shown}; possible now: {possible}")
    plain = "".join(letter if " " <= letter <= "~" else "?" for letter in line)
    response.headers[EXPLAIN_HEADER] = plain if len(plain) <= LENGTH_MAX else f"{plain[:LENGTH_MAX]}..."


def rule_of(rules: Mapping[str, str], violation: Violation) -> str:
    """Find the rule that a violation broke: its own rule, or that for its path or nearest parent path."""
    if violation.rule is not None:
        return violation.rule
    if violation.message.startswith("is not a known key"):
        return UNKNOWN_KEY_RULE
    if violation.message.startswith(ZERO_PERIOD):
        return "SET-21"
    path = re.sub(r"\[\d+\]", "", violation.path)
    if violation.message == COMMON_MESSAGES["required"] and path in REQUIRED_RULES:
        return REQUIRED_RULES[path]
    while path and path not in rules:
        path = path.rpartition(".")[0]
    return rules.get(path, MALFORMED_RULE)


def _broken_rules(call: Call, status: int) -> list[str]:
    if _is_from_fault(call, status):
        return [FAULT_RULE]
    if call.notes.rule is not None:
        return [call.notes.rule]
    rules = call.facts.rules if call.facts is not None else {}
    broken = [rule_of(rules, violation) for violation in call.notes.violations]
    if status == 401 and call.request.headers.get("Authorization"):
        broken = ["AUTH-02"]
    if status == 404 and not call.request.path.startswith(MERCHANT_PATHS):
        broken = ["VER-02"]
    return list(dict.fromkeys(broken)) or [RULE_BY_STATUS.get(status, MALFORMED_RULE)]


def _is_from_fault(call: Call, status: int) -> bool:
    fault = call.notes.fault
    return fault is not None and fault.effect is not None and fault.effect.refusal_status == status


def _possible_calls(call: Call, response: Response, project: Project | None) -> str:
    if project is None:
        return "any call with the API key of a project as the user name of HTTP Basic"
    if _is_from_fault(call, response.status_code):
        return "the same request, once the configured fault is over"
    if call.notes.violations:
        remedies = "; ".join(map(_remedy, call.notes.violations))
        return (
            f"{remedies}; {_possible_calls_on_order(call, project)}"
            if "order_id" in call.values
            else remedies
        )
    if "Allow" in response.headers:
        return response.headers["Allow"]
    return _possible_calls_on_order(call, project)


def _remedy(violation: Violation) -> str:
    """Suggest the allowed values or, if there is no list of them, the field to fix."""
    where = violation.path or "the request"
    if violation.allowed:
        return f"{where}: one of {', '.join(map(str, violation.allowed))}"
    return f"fix {where}"


def _possible_calls_on_order(call: Call, project: Project) -> str:
    order_id = call.values.get("order_id")
    if order_id is None:
        return "another request"
    order = project.epoch.store.order(order_id)
    if order is None:
        newest = project.epoch.store.newest_order_id
        return f"read {newest}, the newest order" if newest is not None else "create an order"
    return f"{', '.join(possible_calls(order))}; its ETag is {project.epoch.etag(order)}"
