"""The commands for a running server; most are calls of the client."""

import json
import re
import sys
import webbrowser
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Annotated, Any, Final, Literal, cast

import click
from marshmallow import fields

from payment_sandbox import judge
from payment_sandbox.cli.options import fail, say, short_time
from payment_sandbox.cli.remote.declaring import (
    NEWEST,
    find_order,
    format_value,
    is_for_programs,
    remote,
    show,
    table,
    with_scheme,
)
from payment_sandbox.client import triggers
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.forms import Form, Items
from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.forms.fields import OneOrMany
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.operations.recipes import RECIPES
from payment_sandbox.projects.settings import DEFAULT_SETTINGS, NewProjectForm
from payment_sandbox.scenarios.scenario_forms import FaultForm, OrderWebhookRuleForm
from payment_sandbox.web.answers import order_tables

NOT_READY: Final = 503
CARD: Final = "credit-card"
ORDER_STATUS: Final = "order {id} is {status}"
ORDERS: Final = "id status amount method=payment_method created webhooks number=merchant_order_id"
FAULTS: Final = "of when then matches"
REQUESTS: Final = "at method path status rule refused=response.error.value ignored"
PROJECTS: Final = "id=project_id mode=settings.mode now=clock.now name=settings.name url=settings.webhook_url"
EVENT_SENTENCES: Final = {
    "request": "{method} {path}  {status}  {error}",
    "action": "{actor} {action}  order {order_id}",
    "status": "order {order_id}  {before} -> {after}",
    "clock": "{now}",
}
NULL: Final = "null"
NewestOrder = Annotated[str, "[ORDER]"]
Assignments = Annotated[tuple[str, ...], "[NAME=VALUE]..."]


def _format_amount(item: Mapping[str, Any]) -> str:
    whole, cents = divmod(int(item["amount"]), 100)
    return f"{whole}.{cents:02} {item['currency']}"


def _format_orders(items: list[dict[str, Any]]) -> str:
    for item in items:
        counts, created = item["webhooks"], short_time(item["created"])
        total = counts["pending"] + counts["delivered"] + counts["lost"] + counts["failed"]
        delivered = f"{counts['delivered']} of {total} delivered"
        item |= {"amount": _format_amount(item), "created": created, "webhooks": delivered}
    return table(items, ORDERS, "no orders")


remote("act last customer pay --card challenge", ORDER_STATUS)(SandboxClient.act)
remote("scan QR_ID", ORDER_STATUS)(SandboxClient.scan)
remote("orders --status completed --limit 5", _format_orders, limit=20)(SandboxClient.orders)
remote("journal --status 400", lambda items: table(items, REQUESTS, "no requests"))(SandboxClient.journal)
remote("wait --order last --status completed --timeout 5", format_value)(SandboxClient.wait)
remote("reset", "project {project_id} has been reset")(SandboxClient.reset)
remote("snapshot > state.json")(SandboxClient.snapshot)
remote("restore state.json", "project {project_id} is restored")(SandboxClient.restore)


@remote("health", "{status}, version {version}")
def health(sandbox: SandboxClient, address: Annotated[str, "[URL]"] = "") -> Any:
    """Check whether a server is ready; a standby is not, so the exit code is 1."""
    try:
        return sandbox.health()
    except SandboxError as refused:
        if refused.status != NOT_READY:
            raise
        say("standby")
        sys.exit(1)


@remote("watch --json")
def watch(sandbox: SandboxClient) -> None:
    """Stream the project's events until Ctrl-C."""
    for event in sandbox.events():
        values = defaultdict(str, {name: format_value(value) for name, value in event.data.items()})
        sentence = values["label"] or EVENT_SENTENCES.get(event.kind, "").format_map(values).strip()
        say(json.dumps(event.data) if is_for_programs() else f"{event.kind:8} {sentence}")
        sys.stdout.flush()
    say("The events have ended: the server stopped, or the project was deleted.", to_stderr=True)


def _format_order(sandbox: SandboxClient, shown: Any) -> str:
    """Describe an order, its pages, possible actions, pending events, refunds, webhooks and history."""
    order = shown["order"]
    lines = [f"order {order['id']} is {order['status']}: {_format_amount(order)}"]
    lines += [f"  {each['payment_method']} is {each['status']}" for each in order["transactions"]]
    lines += [f"  page: {_page_url(sandbox, page)}" for page in shown["pages"]]
    for actor, actions in shown["actions"].items():
        names = [each["action"] if isinstance(each, dict) else each for each in actions]
        lines += [f"  possible for the {actor}: {', '.join(names)}"] if names else []
    lines += [f"  due {short_time(each['at'])}: {each['label']}" for each in shown["agenda"]]
    lines += [
        f"  refund {each['id']} is {each['status']}: {_format_amount(each)}" for each in shown["refunds"]
    ]
    lines += map(_webhook_line, shown["webhooks"])
    if "timeline" in shown:
        for each in shown["timeline"]:
            each |= {"at": short_time(each["at"]), "who": f"{each['from']} -> {each['to']}"}
        lines += ["", table(shown["timeline"], "at who what=label detail", "no history")]
    return "\n".join(lines)


def _webhook_line(webhook: Mapping[str, Any]) -> str:
    state, attempts = "lost (fault)" if webhook["lost"] else webhook["state"], len(webhook["attempts"])
    is_waiting = state == "pending" and not attempts
    advice = "; does it wait for payment-sandbox listen?" if is_waiting else ""
    return f"  webhook {webhook['status']} to {webhook['url']} is {state}, attempts: {attempts}{advice}"


def _page_url(sandbox: SandboxClient, page: str) -> str:
    """Return the address of a page, with the scheme of the server."""
    return page if "://" in page else f"{sandbox.base_url.partition(':')[0]}://{page}"


@remote("order last")
def order(sandbox: SandboxClient, order_id: NewestOrder = NEWEST) -> None:
    """Show an order: its state, possible actions, pending events and history."""
    answer = {**sandbox.overview(order_id), "timeline": sandbox.timeline(order_id)}
    show(answer, partial(_format_order, sandbox))


@remote("pay last --card frictionless", ORDER_STATUS)
def pay(
    sandbox: SandboxClient,
    order_id: NewestOrder = NEWEST,
    *,
    payment_method: Annotated[str | None, "The payment method, for an order without a chosen method."] = None,
    card: Annotated[str | None, "The test card to pay with."] = None,
    issuer_id: Annotated[str | None, "The bank to pay with."] = None,
    open_: Annotated[bool, "Open the payment page in a browser instead."] = False,
) -> Any:
    """Pay an order, by default the newest one, as its customer."""
    overview = sandbox.overview(order_id)
    possible, pages = overview["actions"]["customer"], overview["pages"]
    if open_ and not pages:
        fail("the order has no payment page, or the page has closed")
    if open_:
        address = _page_url(sandbox, pages[-1])
        say(address)
        webbrowser.open(address)
        return None
    if payment_method is not None or ("pay" not in possible and "choose" in possible):
        sandbox.act(order_id, "customer", "choose", payment_method=payment_method or CARD)
    return sandbox.act(order_id, "customer", "pay", card=card, issuer_id=issuer_id)


@remote("trigger paid amount=500")
def trigger(
    sandbox: SandboxClient,
    name: str = "",
    changes: Annotated[tuple[str, ...], "[FIELD=VALUE]..."] = (),
    *,
    order_id: Annotated[str | None, "Act on this order instead of a new one."] = None,
    list_: Annotated[bool, "List the available triggers."] = False,
) -> None:
    """Create an order in a state (see --list), with its webhooks.

    FIELD=VALUE sets fields of the order, and customer.locale=nl a part of one.
    """
    if list_ or not name:
        show({key: recipe.about for key, recipe in RECIPES.items()}, lambda shown: _pairs(shown, "makes"))
        return
    if name not in RECIPES:
        advice = did_you_mean(nearest_word(name, list(RECIPES)))
        fail(f"there is no trigger {name!r}{advice or '; see trigger --list'}")
    body = read_assignments(changes, order_tables.OrderForm(), RECIPES[name].order)
    if order_id is not None and body:
        fail("fields apply to a new order only; remove the fields or --order")
    try:
        overview = triggers.trigger(sandbox, name, order_id, **body)
    except triggers.TriggerImpossible as impossible:
        fail(str(impossible))
    new_id = overview["order"]["id"]
    requests = sandbox.journal(method="POST", path="/v1/orders/", order_id=new_id) if body else []
    if requests and requests[0]["ignored"]:
        ignored = ", ".join(requests[0]["ignored"])
        say(f"payment-sandbox: ignored unknown order fields: {ignored}", to_stderr=True)
    show(overview, partial(_format_order, sandbox))


def _pairs(values: Mapping[str, Any], head: str) -> str:
    return table([{"name": name, head: value} for name, value in values.items()], f"name {head}")


def _format_webhooks(answer: Mapping[str, Any]) -> str:
    lines = []
    for item in answer.get("items", [answer]):
        state, address = "lost" if item["lost"] else item["state"], item["url"] or "not sent: no address"
        lines.append(f"{state:9} {item['order_id']}  {address}  id {item['id']}")
        for attempt in item["attempts"]:
            status = attempt["response"] and attempt["response"]["status"]
            lines.append(f"  {attempt['at']}  {attempt['fault'] or attempt['error'] or status}")
    return "\n".join(lines) or "no webhooks"


@remote("webhooks --state failed", _format_webhooks)
def webhooks(
    sandbox: SandboxClient,
    *,
    order_id: Annotated[str | None, "Only webhooks of this order."] = None,
    state: Annotated[
        Literal["pending", "delivered", "failed", "lost", "unsent"] | None, "Only webhooks in this state."
    ] = None,
) -> Any:
    """List webhooks with the outcomes of their attempts."""
    answer = sandbox.call("GET", "/control/webhooks/", query={"order_id": order_id, "state": state})
    if state is None:
        answer["items"] += sandbox.webhooks(order_id, "unsent")
    if state == "delivered":
        answer["items"] = [item for item in answer["items"] if not item["lost"]]
    return answer


@remote("redeliver last", _format_webhooks)
def redeliver(
    sandbox: SandboxClient,
    newest_of: Annotated[str, "[WEBHOOK]"] = "",
    *,
    to: Annotated[str | None, "Deliver all unsent webhooks to this address."] = None,
) -> Any:
    """Resend a webhook: by its id, the newest one of an order, or the last one of the project.

    With --to, deliver all webhooks that were not sent because no address was set.
    """
    if bool(newest_of) == bool(to):
        fail("give a webhook, or --to with an address")
    if to:
        return {"items": sandbox.deliver_unsent(with_scheme(to))}
    known = sandbox.webhooks()
    matching = known if newest_of == NEWEST else [each for each in known if each["id"].startswith(newest_of)]
    if not matching:
        order_id = find_order(sandbox, newest_of)
        matching = [each for each in known if each["order_id"] == order_id]
        if not matching and sandbox.webhooks(order_id, "unsent"):
            unsent = f"the webhooks of order {order_id} were not sent, because no address was set"
            fail(f"{unsent}: deliver them with payment-sandbox redeliver --to URL")
        if not matching:
            fail(f"order {order_id} has no webhooks; is a webhook_url set? See payment-sandbox settings")
    return sandbox.redeliver(matching[-1]["id"])


@remote("review --all-projects")
def review(
    sandbox: SandboxClient,
    *,
    all_projects: Annotated[bool, "Review all projects; may need the control token."] = False,
) -> None:
    """List the integration's mistakes; exit code 1 if there are any."""
    reviews: list[Any] = [] if all_projects else [{"name": "", "findings": sandbox.reviewed()["items"]}]
    reviews += sandbox.all_findings() if all_projects else []
    items = [item for each in reviews for item in each["findings"]]
    tests = [each["name"] for each in reviews for _ in each["findings"]]  # a project is named like its test

    def describe(item: Mapping[str, Any], test: str) -> str:
        finding = judge.Finding.from_data({**item, "page": f"{sandbox.base_url}{item['page']}"})
        return f"{finding}\n  Test: {make_printable(test)}" if test else str(finding)

    show(items, lambda shown: "\n".join(map(describe, shown, tests)) or "no mistakes")
    sys.exit(0 if all(item["healed"] for item in items) else 1)


def _format_scenarios(answer: Mapping[str, Any]) -> str:
    if "items" in answer:
        return table(answer["items"], "name description")
    return f"{answer['name']}: {answer.get('description', 'no description')}"


@remote("scenario second-try-works", _format_scenarios)
def scenario(
    sandbox: SandboxClient,
    name_or_file: str = "",
    *,
    list_: Annotated[bool, "List the available scenarios."] = False,
) -> Any:
    """Show the active scenario, or switch to one by name or file."""
    if list_ and name_or_file:
        raise click.UsageError("give a name, or --list")
    if list_:
        return sandbox.call("GET", "/control/scenarios/")
    return sandbox.scenario(name_or_file) if name_or_file else sandbox.active_scenario()


def read_assignments(pairs: Iterable[str], form: Form, before: Mapping[str, Any]) -> Any:
    """Return the values by name; a name with dots sets a part of an object, whose other parts stay."""
    values: Any = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name:
            raise click.UsageError(f"{pair!r} is not name=value")
        *parents, last = name.split(".")
        inner, reader = values, cast(Any, form)
        if parents:
            values.setdefault(parents[0], deepcopy(before.get(parents[0]) or {}))
        for parent in parents:
            inner, reader = inner.setdefault(parent, {}), _reader_of(reader, parent)
            if not isinstance(inner, dict):
                raise click.UsageError(f"{pair!r} sets a part of {parent}, which is not an object")
        inner[last] = _read_value(_reader_of(reader, last), text)
    return values


def _reader_of(reader: Any, key: str) -> Any:
    """Return the field that reads a key in what a form or a field reads; None if nothing is declared."""
    form = reader.schema if isinstance(reader, fields.Nested) else reader
    return form.fields.get(key) if isinstance(form, Form) else getattr(form, "value_field", None)


def _read_value(field: Any, text: str) -> Any:
    """Parse a value for its field, without a check: the server refuses what the field does not read."""
    if text != NULL and isinstance(field, fields.String):
        return text
    if text != NULL and isinstance(field, Items) and not text.startswith(("[", "{")):
        items = [_read_value(field.inner, part) for part in text.split(",") if part]
        return items[0] if isinstance(field, OneOrMany) and len(items) == 1 else items
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _format_faults(rules: Mapping[str, Any]) -> str:
    return table([{"of": kind, **rule} for kind in rules for rule in rules[kind]], FAULTS, "no faults")


@remote("faults method=POST path=/v1/orders/ status=503", _format_faults)
def faults(
    sandbox: SandboxClient,
    parts: Assignments = (),
    *,
    webhook: Annotated[bool, "Set a webhook fault, such as status=completed answer=503."] = False,
    clear: Annotated[bool, "Remove all faults first."] = False,
) -> Any:
    """Show the faults, or add one.

    Conditions are method, path and nth, or for webhooks, status and attempt. Effects are status,
    phase, latency, reset, hang, truncate and rate_limit, or, for webhooks, answer, timeout, drop,
    duplicate, together, delay and swap.
    """
    rules: dict[str, Any] = {**(sandbox.reset_faults() if clear else sandbox.active_faults())}
    if not parts:
        return rules
    kind, form = ("webhooks", OrderWebhookRuleForm()) if webhook else ("faults", FaultForm())
    when, then = (cast(Any, form.fields[name]).schema for name in ("when", "then"))
    conditions = [part for part in parts if re.split("[.=]", part)[0] in when.fields]
    effects = [part for part in parts if part not in conditions]
    added = {"when": read_assignments(conditions, when, {}), "then": read_assignments(effects, then, {})}
    return sandbox.put_faults({**rules, kind: [*rules[kind], added]})


@remote("settings mode=live webhook_url=http://localhost:3000/webhook", lambda all_: _pairs(all_, "value"))
def settings(sandbox: SandboxClient, pairs: Assignments = ()) -> Any:
    """Show the project's settings, or change some; null clears a setting."""
    project = sandbox.project()
    if pairs:
        project = sandbox.patch_project(_read_settings(pairs, project["settings"]))
    return project["settings"]


def _read_settings(pairs: Sequence[str], before: Mapping[str, Any]) -> dict[str, Any]:
    """Read settings; null stands for the default value."""
    changed = read_assignments(pairs, NewProjectForm(), before)
    defaults = DEFAULT_SETTINGS.document
    return {name: defaults.get(name) if value is None else value for name, value in changed.items()}


@remote("projects create name=Shop clock=frozen", lambda listed: table(listed["items"], PROJECTS))
def projects(
    sandbox: SandboxClient,
    task: Literal["list", "create", "delete"] = "list",
    pairs: Assignments = (),
    *,
    yes: Annotated[bool, "Delete without confirmation."] = False,
) -> Any:
    """List the projects of the server, create one, or delete the project of --key.

    A project is created with the settings NAME=VALUE, and its API key is shown only once.
    """
    if pairs and task != "create":
        raise click.UsageError(f"projects {task} takes no settings")
    if task == "list":
        return sandbox.call("GET", "/control/projects/")
    if task == "create":
        created = sandbox.new_project(_read_settings(pairs, DEFAULT_SETTINGS.document))
        return show(created, "project {project_id}\nkey {api_key}")
    project = sandbox.project()
    name = make_printable(project["settings"]["name"] or project["project_id"])
    if not yes and not click.confirm(f"Delete project {name} with all its orders?", err=True):
        fail("nothing was deleted")
    return show({"deleted": sandbox.delete_project()}, "project {deleted} is deleted")


def _format_clock(answer: Mapping[str, Any]) -> str:
    if "events" in answer:
        lines = [f"{event['at']}  {event['label']}" for event in answer["events"]]
        stopped = " (stopped early; advance again)" if answer.get("stopped") else ""
        return "\n".join([*lines, f"It is now {answer['to']}{stopped}."])
    is_faster = answer["mode"] == "running" and answer["rate"] != 1
    rate = f", {answer['rate']:g} times as fast as real time" if is_faster else ""
    return f"{answer['now']} ({answer['mode']}{rate})"


@remote("clock --by PT30M", _format_clock)
def clock(
    sandbox: SandboxClient,
    *,
    by: Annotated[str | None, "Advance by a period, such as PT30M."] = None,
    to: Annotated[str | None, "Advance to a time."] = None,
    until: Annotated[Literal["next", "idle"] | None, "Advance to the next event or until idle."] = None,
    freeze: Annotated[bool, "Freeze the clock."] = False,
    rate: Annotated[float | None, "Run the clock at this many sandbox seconds per real second."] = None,
) -> Any:
    """Show the clock, or move it."""
    given = [value for value in (by, to, until, freeze or None, rate) if value is not None]
    if len(given) > 1:
        raise click.UsageError("give one of: --by, --to, --until, --freeze, --rate")
    if freeze or rate is not None:
        sandbox.change_clock(mode="frozen" if freeze else "running", rate=rate)
    elif given:
        return sandbox.advance(by=by, to=to, until=until)
    return sandbox.read_clock()
