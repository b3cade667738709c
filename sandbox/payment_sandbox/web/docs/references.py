"""The parts of the documentation that are generated from the code."""

import json
from collections.abc import Iterator, Mapping
from inspect import getdoc
from typing import Any, Final

from payment_sandbox.forms.schemas import json_schema
from payment_sandbox.methods import ALL, REFUND
from payment_sandbox.operations.choose_scenario import file_schema
from payment_sandbox.orders import refusals as refused
from payment_sandbox.orders.cards import CARDS
from payment_sandbox.projects.default_scenario import default_document
from payment_sandbox.projects.settings import Settings, SettingsForm
from payment_sandbox.scenarios.catalogue import load_file, ready_folder, scenario_files
from payment_sandbox.web.docs.tables import code, fields, table
from payment_sandbox.web.errors import TYPE_OF, TYPE_OF_STATUS, status_of

PARTS: Final = {
    "The document": None,
    "`rules[].when`": "When",
    "`rules[].then`": "Then",
    "`webhooks[].when`": "WebhookWhen",
    "`webhooks[].then`": "WebhookThen",
    "`faults[].when`": "FaultWhen",
    "`faults[].then`": "FaultThen",
}
MEANT: Final = {
    400: "malformed: not a JSON object, a duplicate key, NaN, or nested too deeply",
    401: "missing or unknown API key",
    403: "the control API or a page was called under an unknown host name or from another site's page",
    405: "the path does not allow this method",
    413: "the body is larger than 1 MiB",
    415: "the body is not `application/json`",
    429: "more requests than a `rate_limit` fault allows",
    431: "the headers are too long",
    500: "the sandbox failed; see its log",
}
SETTING_EXAMPLES: Final[Mapping[str, Any]] = {
    "name": "Sock shop",
    "webhook_url": "http://localhost:3000/webhook",
    "forward_to": "http://localhost:3000/webhook",
    "aliases": {"my-bank-button": "bank-redirect-nl"},
    "errors": {"ValidationError": {"status": 422}, "ORD-03": {"value": "Only euros are accepted."}},
    "seed": 7,
}
BY_A_FAULT: Final = "only from a configured fault"


def settings() -> str:
    """Every project setting, with its default and a change of it."""
    schema = json_schema(SettingsForm, {})
    defaults = Settings().as_mapping()
    for name, item in schema["properties"].items():
        default = "all" if name == "payment_methods" else _default(defaults[name])
        change = json.dumps({name: changed_setting(name, item)})
        item["description"] = f"{item['description']} Default: {default}. `PATCH` it with `{change}`."
    return fields(schema, schema["$defs"])


def changed_setting(name: str, item: Mapping[str, Any]) -> Any:
    """Another value than the default, as an example; a test sends it."""
    default = Settings().as_mapping()[name]
    if isinstance(default, bool):
        return not default
    if isinstance(default, list):
        return default[:2]
    if "enum" in item:
        return next(value for value in item["enum"] if value != default)
    return SETTING_EXAMPLES[name]


def _default(value: object) -> str:
    if value in ("", None, {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def scenario() -> str:
    """Every key of a scenario file, part by part."""
    schema = file_schema()
    parts = schema["$defs"]
    shown = []
    for head, name in PARTS.items():
        part = schema if name is None else parts[name]
        top = {**part, "properties": {k: _flat(v) for k, v in part["properties"].items()}}
        shown.append(f"### {head}\n\n{fields(top if name is None else part, {} if name is None else parts)}")
    return "\n\n".join(shown)


def _flat(item: Mapping[str, Any]) -> dict[str, Any]:
    """A field without its own fields, which have a table of their own."""
    flat = {key: value for key, value in item.items() if key not in ("$ref", "allOf")}
    return (
        {**flat, "items": {"type": "object"}} if flat.get("type") == "array" else {"type": "object", **flat}
    )


def outcomes() -> str:
    """The outcome keys that each method supports."""
    rows = []
    for method in (*ALL, REFUND):
        able = method.capabilities
        words = sorted({word for words in able.outcomes for word in words})
        answers = code(able.screenings) if "screening" in words else ""
        name = "refunds (`refund: true`)" if method is REFUND else f"`{method.name}`"
        rows.append((name, code(words), answers))
    return table(("Method", "Keys of `then`", "`screening` answers"), rows)


def ready_scenarios() -> str:
    """The scenarios that come with the sandbox."""
    names = [method.name for method in ALL]
    found = [load_file(path, names, lambda settings: None) for path in scenario_files(ready_folder())]
    return table(("Name", "What happens"), ((f"`{item.name}`", item.description) for item in found))


def trigger_values() -> str:
    """The trigger values, taken from the default scenario."""
    rows = []
    for rule in default_document()["rules"]:
        when, then = rule["when"], rule["then"]
        by_customer = when.get("customer", {}).get("email_address")
        value = f"customer `{by_customer[:-1]}...`" if by_customer else f"amount `{when['amount']}`"
        methods = "refunds" if when.get("refund") else code(when["payment_method"])
        rows.append((value, methods, "; ".join(_said(then))))
    return table(("Value", "With", "What happens"), rows)


def _said(then: Mapping[str, Any]) -> Iterator[str]:
    for key, value in then.items():
        yield f"{key}: " + (", ".join(_said(value)) if isinstance(value, Mapping) else f"`{value}`")


def cards() -> str:
    """The test cards, without their numbers."""
    rows = (
        (f"`{card.name}`", card.family, card.flow, card.truncated_pan, card.refusal or "pays")
        for card in CARDS.values()
    )
    return table(("Card", "Family", "3-D Secure flow", "Shown as", "Bank's answer"), rows)


def methods() -> str:
    """The eleven payment methods and what they need."""
    rows = []
    for method in ALL:
        able = method.capabilities
        needs = ["order_lines"] * able.needs_order_lines + ["customer"] * able.needs_customer
        test = (
            "yes" if able.testable and able.completes_in_test else "stays pending" if able.testable else "no"
        )
        authorizes = "yes" if able.authorizes else ""
        rows.append((f"`{method.name}`", able.default_expiration, test, authorizes, code(needs)))
    heads = ("Method", "Expires after", "In test mode", "Authorizes", "Needs")
    return table(heads, rows)


def refusals() -> str:
    """Every error type of a refusal, with its rule."""
    rows = []
    for kind in refused.kinds_of_refusals():
        name = TYPE_OF.get(kind, kind.__name__)
        rows.append((f"`{name}`", status_of(kind), kind.rule, (getdoc(kind) or "").splitlines()[0]))
    return table(("Type", "Status", "Rule", "When"), sorted(rows))


def errors() -> str:
    """Every other error type."""
    told = set(TYPE_OF.values())
    rows = [("`ValidationError`", "400", "invalid: `violations` lists every problem")]
    rows += [
        (f"`{kind}`", str(status), MEANT.get(status, BY_A_FAULT))
        for status, kind in TYPE_OF_STATUS.items()
        if kind not in told
    ]
    rows.append(("`Refused`", "any other", BY_A_FAULT))
    return table(("Type", "Status", "When"), rows)
