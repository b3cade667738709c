"""The reference pages, read from the code: calls, fields, scenarios, settings, the Python interface."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from importlib.resources import files
from inspect import cleandoc, getdoc
from typing import Any, Final

from payment_sandbox.forms.schemas import json_schema
from payment_sandbox.loading import LOADING
from payment_sandbox.methods import ALL, REFUND
from payment_sandbox.operations.choose_scenario import file_schema
from payment_sandbox.orders import refusals as refused
from payment_sandbox.orders.cards import CARDS
from payment_sandbox.projects.default_scenario import default_document
from payment_sandbox.projects.settings import Settings, SettingsForm
from payment_sandbox.scenarios.catalogue import ready_scenarios
from payment_sandbox.scenarios.effects import REQUEST_EFFECTS, WEBHOOK_EFFECTS, WebhookEffect
from payment_sandbox.scenarios.space import reasons
from payment_sandbox.scenarios.variation import ACTION, ATTEMPT, JOB, PRESS, WEBHOOK, OfferedIn
from payment_sandbox.scenarios.variations import all_offers, rehearsed, sequences
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
    "owner": "the checkout team",
    "expires_after": "PT8H",
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
    """Return an example that differs from the default; a test sends it."""
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


def effects() -> str:
    """What faults do to requests."""
    rows = [(f"`{each.key}: {each.example}`", each.client_sees) for each in REQUEST_EFFECTS]
    rows.append(
        ("`latency: 1.5`", "the correct response, 1.5 real seconds late; also together with another effect")
    )
    return table(("Effect", "What the client sees"), rows)


def effect_classes() -> str:
    """The classes of effects, with their data in a document."""
    rows = []
    for each in (*REQUEST_EFFECTS, *WEBHOOK_EFFECTS):
        kind = "webhooks" if issubclass(each, WebhookEffect) else "requests"
        rows.append((f"`{each.__name__}`", kind, f"`{each.key}`", (getdoc(each) or "").splitlines()[0]))
    return table(("Class", "Of", "Key", "What happens"), rows)


STEPS: Final = {
    WEBHOOK: "the webhook",
    PRESS: "the form",
    ACTION: "the payment",
    ATTEMPT: "the attempt",
    JOB: "the job",
}
PLACES: Final = {
    OfferedIn.WHAT_IF: "**What if …** on the page of an order",
    OfferedIn.SWITCH: "a switch of the dashboard",
    OfferedIn.SEQUENCE: "`payment_webhook_sequences`",
    OfferedIn.SCENARIO: "scenario `{}`",
}


def variations() -> str:
    """What rehearsals change, by the kind of step."""
    rows = []
    for each in rehearsed():
        sentence = each.sentence.format(step=STEPS.get(each.kinds[0], "the call"))
        rows.append((code(each.kinds), f"`{each.name}`", sentence, each.risk))
    return table(("Step", "Variation", "What happens", "What it costs"), rows)


def left_out() -> str:
    """What rehearsals do not change, and why."""
    rows = [(interaction, ", ".join(each), reason) for interaction, each, reason in reasons()]
    return table(("What happens", "How it could end", "Why no variation is for it"), rows)


def offers() -> str:
    """The variations that people play for a whole project, or for an order once more."""
    rows = []
    for offer in all_offers():
        places = "; ".join(PLACES[place].format(offer.name) for place in offer.places)
        rows.append((offer.title, places, offer.risk, offer.undo))
    return table(("What happens", "Where", "What it costs", "Undo"), rows)


def webhook_sequences() -> str:
    """The sequences in which webhooks can arrive."""
    return f"The sequences, from the simplest to the most complex: {'; '.join(sequences())}."


def ready_scenarios_table() -> str:
    """The scenarios that come with the sandbox."""
    names = [method.name for method in ALL]
    known = ready_scenarios(names, lambda settings: None).values()
    return table(("Name", "What happens"), ((f"`{item.name}`", item.description) for item in known))


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
    """The payment methods and what they need."""
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
    known = set(TYPE_OF.values())
    rows = [("`ValidationError`", "400", "invalid: `violations` lists every problem")]
    rows += [
        (f"`{kind}`", str(status), MEANT.get(status, BY_A_FAULT))
        for status, kind in TYPE_OF_STATUS.items()
        if kind not in known
    ]
    rows.append(("`Refused`", "any other", BY_A_FAULT))
    return table(("Type", "Status", "When"), rows)


LONG: Final = 1500  # characters
WRONG_KEY: Final = "401"
ONLY_SELF: Final = ("200", "201", "303")


def merchant_api(description: str) -> str:
    """The calls of the merchant API, as the OpenAPI description has them."""
    return _calls(description, "merchant API")


def control_api(description: str) -> str:
    """The calls of the control API, the server and the documentation."""
    return _calls(description, "control API", "server", "documentation")


def pages(description: str) -> str:
    """The payment pages."""
    return _calls(description, "pages")


def _calls(description: str, *tags: str) -> str:
    whole = json.loads(description)
    named = whole["components"]["schemas"]
    shown = [
        _call(method, path, operation, named)
        for path, operations in whole["paths"].items()
        for method, operation in operations.items()
        if operation["tags"][0] in tags
    ]
    return "\n\n".join(shown)


def _call(method: str, path: str, operation: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    lines = [f"### {method.upper()} {path}", operation["summary"]]
    parameters = [p["name"] for p in operation["parameters"] if p["in"] != "path"]
    if parameters:
        lines.append(f"Parameters: {code(parameters)}.")
    lines += _request(operation.get("requestBody"), named)
    lines.append(f"Responses: {', '.join(_answers(operation['responses']))}.")
    lines += _examples(operation["responses"])
    return "\n\n".join(lines)


def _examples(responses: Mapping[str, Any]) -> Iterator[str]:
    """An answer and refusals, as they really were; the refusal of a wrong key is the same everywhere."""
    for status, response in sorted(responses.items()):
        content = response.get("content", {}).get("application/json", {})
        if "example" not in content or status == WRONG_KEY:
            continue
        yield f"**{status}**{_sent(content)}:"
        text = json.dumps(content["example"], indent=2 if status < "400" else None)
        # colours of a long example would make the page slow
        yield f"```{'json' if len(text) < LONG else 'text'}\n{text}\n```"


def _sent(content: Mapping[str, Any]) -> str:
    """What led to an answer, if it is worth saying."""
    sent = content.get("x-request")
    if sent is None:
        return ""
    return f" for {sent}" if isinstance(sent, str) else f" for `{json.dumps(sent)}`"


def _request(body: Mapping[str, Any] | None, named: Mapping[str, Any]) -> Iterator[str]:
    if body is None:
        return
    content = body["content"]["application/json"]
    form = content["schema"]["$ref"].rpartition("/")[2]
    yield fields(named[form], named)
    if content.get("example"):
        yield f"An example:\n\n```json\n{json.dumps(content['example'], indent=2)}\n```"


def _answers(responses: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in sorted(responses.items()):
        yield (
            status
            if status in ONLY_SELF
            else f"{status} ({answer['description'][0].lower()}{answer['description'][1:]})"
        )


CLASSES: Final = (  # in reading order: the module, the class
    ("testing/project.py", "PaymentSandbox"),
    ("testing/project.py", "ShopInProcess"),
    ("testing/shops/browser.py", "Browser"),
    ("client/clock.py", "SandboxClock"),
    ("client/clock.py", "Advance"),
    ("testing/project.py", "AsyncPaymentSandbox"),
    ("testing/aio.py", "AsyncClock"),
    ("client/receiver.py", "WebhookReceiver"),
    ("client/receiver.py", "ReceivedWebhook"),
    ("testing/unittesting.py", "PaymentSandboxMixin"),
    ("testing/servers.py", "PaymentSandboxServer"),
    ("client/client.py", "SandboxClient"),
    ("client/client.py", "Calls"),
    ("client/errors.py", "SandboxError"),
    ("orders/refusals.py", "Violation"),
    ("client/history.py", "Review"),
    ("operations/review/evidence.py", "Finding"),
)
PROPERTIES: Final = ("property", "cached_property")
LITERAL: Final = re.compile(r"``(.+?)``", re.DOTALL)
NAME: Final = re.compile(r"\b[A-Z][A-Z_]+\b")
RAISES: Final = "Raises:"
AWAITED: Final = re.compile(r"(?P<name>\w+) = awaited\((?P<owner>\w+)\.(?P=name), .*\)")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_reference() -> str:
    """The classes as Markdown."""
    return "\n\n".join(_class(_parsed(file, name), _constants(file)) for file, name in CLASSES)


@cache
def _module(file: str) -> ast.Module:
    text = files("payment_sandbox").joinpath(*file.split("/")).read_text(encoding="utf-8")
    with LOADING:
        return ast.parse(text)


def _constants(file: str) -> dict[str, str]:
    """The values of a module's constants, which defaults name."""
    return {
        node.target.id: ast.unparse(node.value)
        for node in _module(file).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }


def _parsed(file: str, name: str) -> ast.ClassDef:
    return next(node for node in _module(file).body if isinstance(node, ast.ClassDef) and node.name == name)


def _class(definition: ast.ClassDef, constants: Mapping[str, str]) -> str:
    parts = [f"### {definition.name}", _prose(ast.get_docstring(definition))]
    methods = _methods(definition)
    fields = list(_attributes(definition.body))
    for method in methods:
        if method.name == "__init__":
            fields += _attributes(method.body)
            text = ast.get_docstring(method)  # of a class that users create
            parts += [f"`{_signature(method, definition.name, constants)}`", _prose(text)] if text else []
    parts.append("\n".join(f"- `{name}`{f': {_prose(text)}' if text else ''}" for name, text in fields))
    parts += [_method(method, constants) for method in methods if not method.name.startswith("_")]
    return "\n\n".join(filter(None, parts))


def _methods(definition: ast.ClassDef) -> list[Function]:
    return [method for statement in definition.body if (method := _defined(statement)) is not None]


def _defined(statement: ast.stmt) -> Function | None:
    """The method that a statement in a class defines; one that it awaits is that of another class."""
    if isinstance(statement, Function):
        return statement
    awaited = AWAITED.fullmatch(ast.unparse(statement))
    if awaited is None:
        return None
    file = next(file for file, name in CLASSES if name == awaited["owner"])
    method = next(each for each in _methods(_parsed(file, awaited["owner"])) if each.name == awaited["name"])
    return ast.AsyncFunctionDef(**dict(ast.iter_fields(method)))


def _attributes(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """The public attributes, with the text that follows them; of ``self``, those that have a text."""
    for statement, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        text, target = _text(after), _target(statement)
        if isinstance(statement, ast.AnnAssign) and isinstance(target, ast.Name):
            kind, note = _annotated(statement.annotation)
            yield f".{target.id}: {_kind(kind)}", text or note
        elif text and isinstance(target, ast.Attribute):
            yield f".{target.attr}", text


class _WithoutNotes(ast.NodeTransformer):
    """Takes the notes from annotations, and collects the texts among them."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Replace ``Annotated`` by the type in it."""
        if ast.unparse(node.value) != "Annotated" or not isinstance(node.slice, ast.Tuple):
            return self.generic_visit(node)
        kind, *notes = node.slice.elts
        self.texts += [str(note.value) for note in notes if isinstance(note, ast.Constant)]
        return self.visit(kind)  # type: ignore[no-any-return]


def _annotated(annotation: ast.expr) -> tuple[ast.expr, str]:
    """A type without its notes, and the texts among them."""
    notes = _WithoutNotes()
    kind: ast.expr = notes.visit(deepcopy(annotation))  # the parsed module is shared
    return kind, " ".join(notes.texts)


def _target(statement: ast.stmt) -> ast.expr | None:
    """What a statement assigns to, if it is public."""
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    name = target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)
    return None if name.startswith("_") else target


def _kind(annotation: ast.expr) -> str:
    kind = ast.unparse(annotation)
    return kind.removeprefix("ClassVar[").removesuffix("]") if kind.startswith("ClassVar[") else kind


def _text(statement: ast.stmt) -> str:
    """The text that a statement is, if it is one."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return cleandoc(str(statement.value.value))
    return ""


def _method(method: Function, constants: Mapping[str, str]) -> str:
    decorators = {ast.unparse(each) for each in method.decorator_list}
    name = (
        f".{method.name}"
        if decorators & set(PROPERTIES)
        else _signature(method, f".{method.name}", constants)
    )
    prefix = "await " if isinstance(method, ast.AsyncFunctionDef) else ""
    return f"#### `{prefix}{name}`\n\n{_prose(ast.get_docstring(method))}"


def _signature(method: Function, name: str, constants: Mapping[str, str]) -> str:
    """A call with its parameters and their types, on one line."""
    given = method.args
    given = ast.arguments(
        posonlyargs=[arg for arg in given.posonlyargs if arg.arg != "self"],
        args=[arg for arg in given.args if arg.arg != "self"],
        vararg=given.vararg,
        kwonlyargs=given.kwonlyargs,
        kw_defaults=given.kw_defaults,
        kwarg=given.kwarg,
        defaults=given.defaults,
    )
    returned = (
        ast.unparse(method.returns).strip("'\"").removeprefix("answers.")
        if method.returns is not None
        else "None"
    )
    shown = NAME.sub(lambda node: constants.get(node[0], node[0]), f"{name}({ast.unparse(given)})")
    shown = shown.replace("'", '"')
    return shown if returned == "None" else f"{shown} -> {returned.replace('answers.', '')}"


def _prose(text: str | None) -> str:
    """A docstring as Markdown; what it raises becomes a list."""
    body, raises, errors = LITERAL.sub(r"`\1`", text or "").partition(RAISES)
    if not raises:
        return body.strip()
    listed = cleandoc(errors.strip("\n")).replace("\n    ", " ")
    items = [re.sub(r"^(\w+):", r"- raises `\1`:", line) for line in listed.splitlines() if line]
    return f"{body.strip()}\n\n" + "\n".join(items)
