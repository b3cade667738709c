"""The reference pages, generated from the code: calls, fields, scenarios, settings, the Python API."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from inspect import cleandoc, getdoc
from typing import Any, Final

from payment_sandbox.forms.schemas import json_schema
from payment_sandbox.methods import ALL_METHODS, REFUND
from payment_sandbox.operations.choose_scenario import file_schema
from payment_sandbox.orders.cards import CARDS
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.packaged import read_packaged
from payment_sandbox.projects.default_scenario import default_document
from payment_sandbox.projects.http_clients import HTTP_CLIENTS
from payment_sandbox.projects.settings import SETTINGS, Settings, SettingsForm
from payment_sandbox.scenarios.catalogue import ready_scenarios
from payment_sandbox.scenarios.effects import REQUEST_EFFECTS, WEBHOOK_EFFECTS, WebhookEffect
from payment_sandbox.web.error_bodies import STATUS_BY_REFUSAL, TYPE_BY_STATUS, status_and_type
from pytest_payment_sandbox.rehearsal.steps import ACTION, ATTEMPT, PRESS, TIME, WEBHOOK
from pytest_payment_sandbox.rehearsal.variations import VARIATIONS
from tests.documentation.tables import code, fields, table
from tests.support.projects import openapi_description

SCENARIO_PARTS: Final = {
    "The document": None,
    "`rules[].when`": "When",
    "`rules[].then`": "Then",
    "`webhooks[].when`": "WebhookWhen",
    "`webhooks[].then`": "WebhookThen",
    "`faults[].when`": "FaultWhen",
    "`faults[].then`": "FaultThen",
}
STATUS_MEANINGS: Final = {
    400: "malformed: not a JSON object, a duplicate key, NaN, or nested too deeply",
    401: "missing or unknown API key",
    403: "the control API or a page was called with an unknown host name or from a page on another site",
    405: "the path does not allow this method",
    413: "the body is larger than 1 MiB",
    415: "the body is not `application/json`",
    429: "more requests than a `rate_limit` fault permits",
    431: "the headers are too long",
    500: "the sandbox failed; see its log",
}
FAULT_STATUS_MEANING: Final = "only from a configured fault"


def settings_table() -> str:
    """Return the table of project settings, with defaults and an example change for each."""
    schema = json_schema(SettingsForm, {})
    defaults = Settings().document
    for name, item in schema["properties"].items():
        default = "all" if name == "payment_methods" else _format_default(defaults[name])
        change = json.dumps({name: example_setting(name, item)})
        item["description"] = f"{item['description']} Default: {default}. `PATCH` it with `{change}`."
    return fields(schema, schema["$defs"])


def example_setting(name: str, item: Mapping[str, Any]) -> Any:
    """Return an example value other than the default; a test sends each example."""
    default = Settings().document[name]
    if isinstance(default, bool):
        return not default
    if isinstance(default, list):
        return default[:2]
    if "enum" in item:
        return next(value for value in item["enum"] if value != default)
    return SETTINGS[name].example


def _format_default(value: object) -> str:
    if value in ("", None, {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def scenario_tables() -> str:
    """Return a table of keys for each part of a scenario file."""
    schema = file_schema()
    parts = schema["$defs"]
    shown = []
    for head, name in SCENARIO_PARTS.items():
        part = schema if name is None else parts[name]
        top = {**part, "properties": {k: _without_nested(v) for k, v in part["properties"].items()}}
        shown.append(f"### {head}\n\n{fields(top if name is None else part, {} if name is None else parts)}")
    return "\n\n".join(shown)


def _without_nested(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a field without its nested fields, which have a separate table."""
    flat = {key: value for key, value in item.items() if key not in ("$ref", "allOf")}
    return (
        {**flat, "items": {"type": "object"}} if flat.get("type") == "array" else {"type": "object", **flat}
    )


def outcomes_table() -> str:
    """Return the table of outcome keys by method."""
    rows = []
    for method in (*ALL_METHODS, REFUND):
        capabilities = method.capabilities
        words = sorted({word for words in capabilities.outcomes for word in words})
        answers = code(capabilities.screenings) if "screening" in words else ""
        name = "refunds (`refund: true`)" if method is REFUND else f"`{method.name}`"
        rows.append((name, code(words), answers))
    return table(("Method", "Keys of `then`", "`screening` answers"), rows)


def http_clients_table() -> str:
    """Return the table of HTTP clients that send requests again."""
    rows = ((each.name, each.version, each.posts, each.deletes, each.remedy) for each in HTTP_CLIENTS)
    return table(("Client", "Version", "POST", "DELETE", "To stop it"), rows)


def effects_table() -> str:
    """Return the table of the effects of faults on requests."""
    rows = [(f"`{each.key}: {each.example}`", each.client_sees) for each in REQUEST_EFFECTS]
    rows.append(
        ("`latency: 1.5`", "the correct response, 1.5 real seconds late; can accompany another effect")
    )
    return table(("Effect", "What the client sees"), rows)


def effect_classes_table() -> str:
    """Return the table of effect classes, with their keys in scenario files."""
    rows = []
    for each in (*REQUEST_EFFECTS, *WEBHOOK_EFFECTS):
        kind = "webhooks" if issubclass(each, WebhookEffect) else "requests"
        rows.append((f"`{each.__name__}`", kind, f"`{each.key}`", (getdoc(each) or "").splitlines()[0]))
    return table(("Class", "Applies to", "Key", "What happens"), rows)


STEP_NAMES: Final = {
    WEBHOOK: "the webhook",
    PRESS: "the form",
    ACTION: "the payment",
    ATTEMPT: "the attempt",
    TIME: "the clock advance",
}


def variations_table() -> str:
    """Return the table of variations, by the kind of step."""
    rows = []
    for each in VARIATIONS:
        sentence = each.sentence.format(step=STEP_NAMES.get(each.kinds[0], "the call"))
        rows.append((code(each.kinds), f"`{each.name}`", sentence, each.risk))
    return table(("Step", "Variation", "What happens", "What it costs"), rows)


def ready_scenarios_table() -> str:
    """Return the table of ready-made scenarios."""
    names = [method.name for method in ALL_METHODS]
    known = ready_scenarios(names, lambda settings: None).values()
    return table(("Name", "What happens"), ((f"`{item.name}`", item.description) for item in known))


def trigger_values_table() -> str:
    """Return the table of trigger values, from the default scenario."""
    rows = []
    for rule in default_document()["rules"]:
        when, then = rule["when"], rule["then"]
        by_customer = when.get("customer", {}).get("email_address")
        value = f"customer `{by_customer[:-1]}...`" if by_customer else f"amount `{when['amount']}`"
        methods = "refunds" if when.get("refund") else code(when["payment_method"])
        rows.append((value, methods, "; ".join(_describe_outcome(then))))
    return table(("Value", "With", "What happens"), rows)


def _describe_outcome(then: Mapping[str, Any]) -> Iterator[str]:
    for key, value in then.items():
        yield f"{key}: " + (
            ", ".join(_describe_outcome(value)) if isinstance(value, Mapping) else f"`{value}`"
        )


def cards_table() -> str:
    """Return the table of test cards, without their numbers."""
    rows = (
        (f"`{card.name}`", card.family, card.flow, card.truncated_pan, card.refusal or "pays")
        for card in CARDS.values()
    )
    return table(("Card", "Family", "3-D Secure flow", "Shown as", "Bank's answer"), rows)


def methods_table() -> str:
    """Return the table of payment methods, with their requirements."""
    rows = []
    for method in ALL_METHODS:
        capabilities = method.capabilities
        needs = ["order_lines"] * capabilities.needs_order_lines + ["customer"] * capabilities.needs_customer
        test = (
            "yes"
            if capabilities.testable and capabilities.completes_in_test
            else "stays pending"
            if capabilities.testable
            else "no"
        )
        authorizes = "yes" if capabilities.authorizes else ""
        rows.append((f"`{method.name}`", capabilities.default_expiration, test, authorizes, code(needs)))
    headers = ("Method", "Expires after", "In test mode", "Authorizes", "Needs")
    return table(headers, rows)


def refusal_classes(kind: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    """Yield all refusal classes of the package, at every level."""
    for subclass in kind.__subclasses__():
        if subclass.__module__.startswith("payment_sandbox."):
            yield subclass
            yield from refusal_classes(subclass)


def refusals_table() -> str:
    """Return the table of refusals: their error types and rules."""
    rows = []
    for kind in refusal_classes():
        status, name = status_and_type(kind)
        rows.append((f"`{name}`", status, kind.rule, (getdoc(kind) or "").splitlines()[0]))
    return table(("Type", "Status", "Rule", "When"), sorted(rows))


def errors_table() -> str:
    """Return the table of all other error types."""
    known = {TYPE_BY_STATUS[status] for status in STATUS_BY_REFUSAL.values()}
    rows = [("`ValidationError`", "400", "invalid request: `violations` lists every problem")]
    rows += [
        (f"`{kind}`", str(status), STATUS_MEANINGS.get(status, FAULT_STATUS_MEANING))
        for status, kind in TYPE_BY_STATUS.items()
        if kind not in known
    ]
    rows.append(("`Refused`", "any other", FAULT_STATUS_MEANING))
    return table(("Type", "Status", "When"), rows)


WRONG_KEY_STATUS: Final = "401"
PLAIN_STATUSES: Final = ("200", "201", "303")


def describe_calls(*tags: str) -> str:
    """Describe the calls with these tags, from the OpenAPI description; without tags, those of the control API."""
    whole = json.loads(openapi_description())
    schemas = whole["components"]["schemas"]
    shown = [
        _describe_call(method, path, operation, schemas)
        for path, operations in whole["paths"].items()
        for method, operation in operations.items()
        if operation["tags"][0].startswith(tags)
    ]
    return "\n\n".join(shown)


def _describe_call(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    lines = [f"### {method.upper()} {path}", operation["summary"]]
    parameters = [p["name"] for p in operation["parameters"] if p["in"] != "path"]
    if parameters:
        lines.append(f"Parameters: {code(parameters)}.")
    lines += _describe_request_body(operation.get("requestBody"), schemas)
    lines.append(f"Responses: {', '.join(_describe_responses(operation['responses']))}.")
    lines += _examples(operation["responses"])
    return "\n\n".join(lines)


def _examples(responses: Mapping[str, Any]) -> Iterator[str]:
    """Yield the recorded response and refusals of a call, except the common refusal of a wrong key."""
    for status, response in sorted(responses.items()):
        content = response.get("content", {}).get("application/json", {})
        if "example" not in content or status == WRONG_KEY_STATUS:
            continue
        yield f"**{status}**{_describe_request(content)}:"
        text = json.dumps(content["example"], indent=2 if status < "400" else None)
        yield f"```json\n{text}\n```"


def _describe_request(content: Mapping[str, Any]) -> str:
    sent = content.get("x-request")
    if sent is None:
        return ""
    return f" for {sent}" if isinstance(sent, str) else f" for `{json.dumps(sent)}`"


def _describe_request_body(body: Mapping[str, Any] | None, schemas: Mapping[str, Any]) -> Iterator[str]:
    if body is None:
        return
    content = body["content"]["application/json"]
    form = content["schema"]["$ref"].rpartition("/")[2]
    yield fields(schemas[form], schemas)
    if content.get("example"):
        yield f"An example:\n\n```json\n{json.dumps(content['example'], indent=2)}\n```"


def _describe_responses(responses: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in sorted(responses.items()):
        yield (
            status
            if status in PLAIN_STATUSES
            else f"{status} ({answer['description'][0].lower()}{answer['description'][1:]})"
        )


DOCUMENTED_CLASSES: Final = (  # module and class, in reading order
    ("testing/project_fixture.py", "PaymentSandbox"),
    ("testing/project_fixture.py", "ShopInProcess"),
    ("testing/shops/browser.py", "Browser"),
    ("client/sandbox_clock.py", "SandboxClock"),
    ("client/sandbox_clock.py", "Advance"),
    ("testing/project_fixture.py", "AsyncPaymentSandbox"),
    ("testing/aio.py", "AsyncClock"),
    ("client/receiver.py", "WebhookReceiver"),
    ("client/receiver.py", "ReceivedWebhook"),
    ("testing/unittesting.py", "PaymentSandboxMixin"),
    ("testing/servers.py", "PaymentSandboxServer"),
    ("client/client.py", "SandboxClient"),
    ("client/control_commands.py", "ControlCommands"),
    ("client/errors.py", "SandboxError"),
    ("orders/refusals.py", "Violation"),
    ("client/project_review.py", "Review"),
    ("judge/evidence.py", "Finding"),
)
PROPERTY_DECORATORS: Final = ("property", "cached_property")
LITERAL: Final = re.compile(r"``(.+?)``", re.DOTALL)
MODULE_OF_CLASS = re.compile(r"\b[a-z]\w*\.(?=[A-Z])")
ANNOTATED: Final = re.compile(r"Annotated\[(?P<kind>[^,]+), (?:OneOf\([^)]*\), )?(?:'(?P<note>[^']*)'|\w+)\]")
CLASS_VARIABLE: Final = re.compile(r"^ClassVar\[(.*)\]$")
CONSTANT_NAME: Final = re.compile(r"\b[A-Z][A-Z_]+\b")
RAISES: Final = "Raises:"
AWAITED_METHOD: Final = re.compile(r"(?P<name>\w+) = to_coroutine\((?P<owner>\w+)\.(?P=name), .*\)")

COMMANDS: Final = "ControlCommands"  # the base of the clients

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_reference() -> str:
    """Describe the public classes as Markdown."""
    return "\n\n".join(
        _describe_class(_parse_class(file, name), _constants(file)) for file, name in DOCUMENTED_CLASSES
    )


@cache
def _parse_module(file: str) -> ast.Module:
    return ast.parse(read_packaged(file))


def _constants(file: str) -> dict[str, str]:
    """Return the values of a module's constants, to replace their names in defaults."""
    return {
        node.target.id: ast.unparse(node.value)
        for node in _parse_module(file).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }


def _parse_class(file: str, name: str) -> ast.ClassDef:
    return next(
        node for node in _parse_module(file).body if isinstance(node, ast.ClassDef) and node.name == name
    )


def _describe_class(definition: ast.ClassDef, constants: Mapping[str, str]) -> str:
    parts = [f"### {definition.name}", _markdown(ast.get_docstring(definition))]
    methods = _methods(definition)
    fields = list(_attributes(definition.body))
    for method in methods:
        if method.name == "__init__":
            fields += _attributes(method.body)
            text = ast.get_docstring(method)  # only the constructors that users call have a docstring
            parts += [f"`{_signature(method, definition.name, constants)}`", _markdown(text)] if text else []
    parts.append("\n".join(f"- `{name}`{f': {_markdown(text)}' if text else ''}" for name, text in fields))
    parts += [_describe_method(method, constants) for method in methods if not method.name.startswith("_")]
    return "\n\n".join(filter(None, parts))


def _methods(definition: ast.ClassDef) -> list[Function]:
    return [method for statement in definition.body if (method := _method_of(statement)) is not None]


def _method_of(statement: ast.stmt) -> Function | None:
    """Return the method that a statement defines; ``to_coroutine(...)`` wraps a method of another class."""
    if isinstance(statement, Function):
        return statement
    awaited = AWAITED_METHOD.fullmatch(ast.unparse(statement))
    if awaited is None:
        return None
    owner = next(_parse_class(file, name) for file, name in DOCUMENTED_CLASSES if name == awaited["owner"])
    bases = [ast.unparse(base) for base in owner.bases]
    inherited = [_parse_class(file, name) for file, name in DOCUMENTED_CLASSES if name in (*bases, COMMANDS)]
    methods = [method for each in (owner, *inherited) for method in _methods(each)]
    method = next(each for each in methods if each.name == awaited["name"])
    return ast.AsyncFunctionDef(**dict(ast.iter_fields(method)))


def _attributes(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield the public attributes with their docstrings; attributes of ``self`` only if they have one."""
    for statement, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        text, target = _docstring_text(after), _public_target(statement)
        if isinstance(statement, ast.AnnAssign) and isinstance(target, ast.Name):
            kind, notes = CLASS_VARIABLE.sub(r"\1", ast.unparse(statement.annotation)), list[str]()
            while match := ANNOTATED.search(kind):
                kind = kind.replace(match[0], match["kind"])
                notes += filter(None, [match["note"]])
            yield f".{target.id}: {kind}", text or " ".join(notes)
        elif text and isinstance(target, ast.Attribute):
            yield f".{target.attr}", text


def _public_target(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    name = target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)
    return None if name.startswith("_") else target


def _docstring_text(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return cleandoc(str(statement.value.value))
    return ""


def _describe_method(method: Function, constants: Mapping[str, str]) -> str:
    decorators = {ast.unparse(each) for each in method.decorator_list}
    name = (
        f".{method.name}"
        if decorators & set(PROPERTY_DECORATORS)
        else _signature(method, f".{method.name}", constants)
    )
    prefix = "await " if isinstance(method, ast.AsyncFunctionDef) else ""
    return f"#### `{prefix}{name}`\n\n{_markdown(ast.get_docstring(method))}"


class PlainTypes(ast.NodeTransformer):
    """Removes the descriptions from the types of parameters."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return the type of an ``Annotated``."""
        self.generic_visit(node)
        is_described = ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple)
        return node.slice.elts[0] if is_described and isinstance(node.slice, ast.Tuple) else node


def _signature(method: Function, name: str, constants: Mapping[str, str]) -> str:
    arguments = re.sub(r"^self(, /)?(, |$)", "", ast.unparse(PlainTypes().visit(deepcopy(method.args))))
    returned = ast.unparse(method.returns).strip("'\"") if method.returns is not None else "None"
    return_type = MODULE_OF_CLASS.sub("", returned)
    shown = CONSTANT_NAME.sub(lambda node: constants.get(node[0], node[0]), f"{name}({arguments})")
    shown = shown.replace("'", '"')
    return shown if return_type == "None" else f"{shown} -> {return_type}"


def _markdown(text: str | None) -> str:
    """Convert a docstring to Markdown; the exceptions become a list."""
    body, raises, errors = LITERAL.sub(r"`\1`", text or "").partition(RAISES)
    if not raises:
        return body.strip()
    listed = cleandoc(errors.strip("\n")).replace("\n    ", " ")
    items = [re.sub(r"^(\w+):", r"- raises `\1`:", line) for line in listed.splitlines() if line]
    return f"{body.strip()}\n\n" + "\n".join(items)
