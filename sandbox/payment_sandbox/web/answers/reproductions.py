"""Generates a test of an order, which fails while the shop makes the order's mistakes."""

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from payment_sandbox.judge import (
    VAULT_TOKEN,
    Finding,
    calls_during,
    is_answer_lost,
    start_of,
)
from payment_sandbox.judge.history import history
from payment_sandbox.judge.lessons import SENT_AGAIN
from payment_sandbox.kernel.masking import MASK
from payment_sandbox.kernel.times import Period, format_duration, timestamp
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.webhooks import (
    ATTEMPTS_MAX,
    MANUAL_ATTEMPT,
    RETRY_AFTER,
    Delivery,
    DeliveryState,
    WebhookAttempt,
)
from payment_sandbox.projects.default_scenario import DEFAULT_NAME
from payment_sandbox.projects.journal import (
    MERCHANT_ACTOR,
    RETURN,
    SCAN,
    SHOP_REQUEST,
    VIA_SCENARIO,
    LoggedRequest,
    PerformedAction,
    ReachedStatus,
)
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.scenarios.effects import Answer, Delay, Drop, Duplicate, RateLimit, Swap, Timeout
from payment_sandbox.web.answers.timeline_report import request_record

CREATE = "create"
ACTIONS_NOT_REPLAYED = (SHOP_REQUEST, RETURN, SCAN, CREATE)
ONE_SECOND = timedelta(seconds=1)
LINE_LENGTH = 70
ATTEMPT_LINE = '    attempt = sandbox.client.order(order_id)["transactions"][-1]["id"]'
Rule = dict[str, Any]
"""A fault rule, an effect, or a body, as JSON."""
UNREPRODUCIBLE_RULES: Final = ("SET-03", "FLOW-09", "HOOK-03", "HOOK-04")
"""Rules broken by mistakes that a test cannot repeat: double clicks, cards of other orders, wrong URLs."""
DAY_LATER_RULES: Final = ("HOOK-12", "HOOK-13", "A45")
"""Rules that can be broken only a day after the payment."""
NEVER: Final = datetime.min.replace(tzinfo=UTC)
JOB_RULES: Final = (*DAY_LATER_RULES, "CAP-03")
READ_RULE: Final = "HOOK-02"
RETURN_RULE: Final = "FLOW-15"
WEBHOOK_PATH: Final = "/webhook"


class RepeatedStep(NamedTuple):
    """The lines of the test for one step."""

    real_at: datetime
    at: datetime
    lines: Sequence[str]


class ReproducedOrder(NamedTuple):
    """An order with its mistakes, if any, and the steps to repeat in the test."""

    project: Project
    order: Order
    mistakes: Sequence[Finding]
    body: Rule
    created: RepeatedStep
    entries: Sequence[LoggedRequest]
    deliveries: Sequence[Delivery]

    @property
    def has_shop(self) -> bool:
        """Whether the test needs the shop: webhooks reached it, or it has to prove that it is right."""
        return bool(self.deliveries) or not self.mistakes

    @property
    def rules(self) -> set[str]:
        """The rules that the mistakes broke."""
        return {mistake.rule for mistake in self.mistakes}

    @property
    def shown_by(self) -> set[str]:
        """The ids of the records that show the mistakes."""
        return {each for mistake in self.mistakes for each in mistake.shown_by}


def reproduction(project: Project, order: Order, findings: Iterable[Finding]) -> str | None:
    """Write the test; None if its mistakes or its creation cannot be repeated.

    The shop is a fixture of the user and handles webhooks itself; the test repeats all other calls and
    actions at the same sandbox times, counted from the order's creation.
    """
    mistakes = [each for each in findings if each.is_open]
    resends = [each for each in mistakes if each.page == SENT_AGAIN.path]
    if resends and len(resends) == len(mistakes):
        return "\n".join(_client_test_lines(project, order, resends[0])) + "\n"
    case = _reproduced_order(project, order, mistakes)
    if case is None or (mistakes and not case.mistakes):
        return None
    return "\n".join(_test_lines(case)) + "\n"


def _client_test_lines(project: Project, order: Order, resend: Finding) -> Iterator[str]:
    """Yield a test of the shop's HTTP client: a call without a response must arrive once."""
    first = project.epoch.journal.find(resend.preceded_by[0])
    path = _path_pattern(first.path) if first is not None else "*"
    method = first.method if first is not None else "POST"
    fault = {"when": {"method": method, "path": path, "nth": 1}, "then": {"reset": True, "phase": "after"}}
    yield f"def test_order_{order.id[:8]}(payment_sandbox):"
    yield '    """Fails until your HTTP client sends each call once.'
    yield ""
    yield f"    {resend.advice}"
    yield '    """'
    yield "    sandbox = payment_sandbox"
    yield f"    sandbox.client.faults(faults=[{format_literal(fault, 4)}])"
    yield "    # Make the call with the shop's own HTTP client, after another one on the same connection."
    yield "    your_call(sandbox.base_url, sandbox.api_key)"
    yield f'    sent = [call for call in sandbox.client.journal(method="{method}") if call["resent_of"]]'
    yield "    assert sent == []"


def _reproduced_order(project: Project, order: Order, mistakes: Sequence[Finding]) -> ReproducedOrder | None:
    created = creation_of(project, order)
    body = creation_body(project, order, created)
    if body is None:
        return None
    order_ids = (order.id, *(refund.refund_id for refund in order.refunds))
    deliveries = [each for id_ in order_ids for each in project.epoch.store.deliveries_of(id_)]
    paths = tuple(f"/v1/orders/{each}/" for each in order_ids)
    entries = list(
        project.epoch.journal.entries(
            lambda entry: entry.order_id in order_ids or entry.path.startswith(paths)
        )
    )
    reproducible = _reproducible_mistakes(mistakes, entries)
    if created is not None:
        creation = RepeatedStep(start_of(created), created.at, list(_creation_lines(created)))
    else:
        creation = RepeatedStep(_first_seen(project, order), order.created, list(_creation_lines(None)))
    return ReproducedOrder(project, order, reproducible, body, creation, entries, deliveries)


def _reproducible_mistakes(mistakes: Iterable[Finding], entries: Iterable[LoggedRequest]) -> list[Finding]:
    """Return the reproducible mistakes, which need no secret and no stored card."""
    secret = {entry.id for entry in entries if VAULT_TOKEN in entry.request or MASK.encode() in entry.request}
    return [
        each
        for each in mistakes
        if each.rule not in UNREPRODUCIBLE_RULES
        and each.page != SENT_AGAIN.path
        and secret.isdisjoint(each.shown_by)
    ]


def _first_seen(project: Project, order: Order) -> datetime:
    """Return when a manually created order appeared, in real time; ``NEVER`` if the journal dropped it."""
    reached = project.epoch.journal.of(ReachedStatus, (order.id,))
    return min((each.real_at for each in reached), default=NEVER)


def _creation_lines(created: LoggedRequest | None) -> Iterator[str]:
    yield "    # Call your own checkout instead, so that your shop knows the order."
    yield from _call_lines("post(orders, json=body)", created)
    yield '    order_id = sandbox.client.orders(limit=1)[0]["id"]'


def _test_lines(case: ReproducedOrder) -> Iterator[str]:
    steps = sorted(_steps(case), key=lambda step: step.real_at)
    settings, state = _settings_arguments(case, steps[0].at), case.project.epoch.state
    if any("suppress(" in line for step in steps for line in step.lines):
        yield "from contextlib import suppress"
        yield ""
    yield "import pytest"
    yield ""
    yield ""
    yield f"@pytest.mark.payment_settings({settings})"
    yield f"def test_order_{case.order.id[:8]}(payment_sandbox{', shop' if case.has_shop else ''}):"
    yield from _docstring_lines(case)
    yield "    sandbox = payment_sandbox"
    if case.has_shop:
        yield from _shop_lines(case)
    if state.scenario.name != DEFAULT_NAME:
        yield f"    sandbox.scenario({state.scenario.name!r})"
    yield from _fault_lines(case)
    yield '    orders = f"{sandbox.base_url}/v1/orders/"'
    body = {name: value for name, value in case.body.items() if name != "webhook_url" or not case.has_shop}
    yield f"    body = {format_literal(body, 4)}"
    yield from _with_advances(steps, _test_end(case))
    yield "    sandbox.client.wait(idle=True)"
    yield from _outcome_lines(case)
    yield "    sandbox.review().assert_clean()"


def _outcome_lines(case: ReproducedOrder) -> Iterator[str]:
    """Yield assertions of the outcome, unless a mistake may have caused it."""
    if case.mistakes:
        return
    order = case.order
    yield f'    assert sandbox.client.order(order_id)["status"] == {order.status!r}'
    if order.refunds:
        refunded = [refund.amount_cents for refund in order.refunds]
        yield '    refunds = sandbox.client.overview(order_id)["refunds"]'
        yield f'    assert [refund["amount"] for refund in refunds] == {refunded}'


def _settings_arguments(case: ReproducedOrder, start: datetime) -> str:
    settings = case.project.epoch.state.base_settings
    timing = f', webhook_timing="{BEFORE_RESPONSE}"' if settings.webhook_timing == BEFORE_RESPONSE else ""
    return f'clock="frozen@{timestamp(start)}", mode="{settings.mode}"{timing}'


def _docstring_lines(case: ReproducedOrder) -> Iterator[str]:
    title = "Fails until your handler is fixed." if case.mistakes else "Passes while your shop is right."
    yield f'    """{title}'
    yield from ("",) if case.mistakes else ()
    for problem in dict.fromkeys(mistake.problem for mistake in case.mistakes):
        text = problem.replace("\\", "/").replace('"', "'")
        yield f"    {text[:1].upper()}{text[1:]}."
    if case.has_shop:
        yield ""
        yield "    The fixture shop is your application, or the address of its webhooks in another process;"
        yield "    it calls payment_sandbox.base_url with payment_sandbox.api_key."
    if case.rules.intersection(JOB_RULES):
        yield '    If a job of your shop fixes it, the fixture runs it: payment_sandbox.every("PT1H", job).'
    yield '    """'


def _shop_lines(case: ReproducedOrder) -> Iterator[str]:
    path = urlsplit(case.deliveries[0].url).path if case.deliveries else ""
    yield "    if isinstance(shop, str):"
    yield "        sandbox.client.change_settings(webhook_url=shop)"
    yield "    else:"
    yield f"        sandbox.deliver_to(shop, {'http://testserver' + (path or WEBHOOK_PATH)!r})"


def _with_advances(steps: Sequence[RepeatedStep], end: datetime) -> Iterator[str]:
    """Yield the lines of all steps, with clock advances in between."""
    now = steps[0].at
    for step in [*steps, RepeatedStep(end, end, ())]:
        if step.at - now >= ONE_SECOND:
            yield f"    sandbox.clock.advance({format_duration(step.at - now)!r})"
            now = step.at
        yield from step.lines


def _test_end(case: ReproducedOrder) -> datetime:
    """Return the end of the test: the last entry, or a day after the payment if a mistake requires it."""
    end = max(timeline_entry.at for timeline_entry in history(case.project.epoch, case.order.id))
    if case.rules.isdisjoint(DAY_LATER_RULES):
        return end
    reached = case.project.epoch.journal.of(ReachedStatus, (case.order.id,))
    own = [each.at for each in reached if each.payment_method is None]
    return max(end, max(own, default=end) + timedelta(days=1))


def _steps(case: ReproducedOrder) -> Iterator[RepeatedStep]:
    """Yield the calls and actions outside the shop's webhook handler."""
    yield case.created
    handled = _calls_during_webhooks(case)
    for entry in case.entries:
        if entry.id not in handled and not is_order_creation(entry) and _is_repeated(case, entry):
            yield RepeatedStep(start_of(entry), entry.at, list(_step_lines(case, entry)))
    yield from _other_creations(case)
    for performed in case.project.epoch.journal.actions(frozenset((case.order.id,))):
        if performed.via != VIA_SCENARIO and performed.action not in ACTIONS_NOT_REPLAYED:
            yield RepeatedStep(performed.real_at, performed.at, list(replayed_action_lines(performed)))
        elif performed.action == RETURN and RETURN_RULE in case.rules and case.deliveries:
            yield RepeatedStep(
                performed.real_at, performed.at, ["    sandbox.browser(shop).returns(order_id)"]
            )
    yield from _redeliveries(case)


def _calls_during_webhooks(case: ReproducedOrder) -> set[str]:
    """Return the ids of calls made while a webhook was handled or, if there are none, shortly afterwards."""
    spans = [
        (attempt.real_at, attempt.real_at + timedelta(milliseconds=attempt.reply.duration_ms))
        for delivery in case.deliveries
        for attempt in delivery.attempts
        if not attempt.is_withheld
    ]
    before_answers = {
        entry.id for entry in case.entries if any(begin <= start_of(entry) <= end for begin, end in spans)
    }
    handled = before_answers or calls_during(case.deliveries, case.entries)
    return handled - _retries(case.entries, handled)


def _retries(entries: Iterable[LoggedRequest], handled: Container[str]) -> set[str]:
    """Return the ids of retries after a lost response, made by the caller of the first call."""
    lost: set[tuple[str, str, bytes]] = set()
    retries: set[str] = set()
    for entry in sorted(entries, key=start_of):
        call = entry.method, entry.path, entry.request
        if call in lost:
            retries.add(entry.id)
        elif entry.id not in handled and is_answer_lost(entry):
            lost.add(call)
    return retries


def _is_repeated(case: ReproducedOrder, entry: LoggedRequest) -> bool:
    """Whether the test repeats a call; reads are repeated only if they are the mistake."""
    return entry.method != "GET" or (READ_RULE in case.rules and entry.id in case.shown_by)


def _step_lines(case: ReproducedOrder, entry: LoggedRequest) -> Iterator[str]:
    before, call = replayed_call(case.project, case.order, entry)
    yield from before
    if entry.id in case.shown_by:
        yield "    # Call your own code instead, which made this call."
    if entry.method == "GET" or case.mistakes or entry.fault is not None:
        yield from _call_lines(call, entry)
    else:
        yield from asserted_call_lines(call, entry.status)


def _call_lines(call: str, entry: LoggedRequest | None) -> Iterator[str]:
    """Yield a call; a lost response becomes a connection error."""
    if entry is not None and entry.fault is not None and entry.fault.loses_response:
        yield "    with suppress(OSError):"
        yield f"        sandbox.session.{call}"
    else:
        yield f"    sandbox.session.{call}"


def _other_creations(case: ReproducedOrder) -> Iterator[RepeatedStep]:
    """Yield the calls that create other orders involved in the mistake."""
    shown_by = case.shown_by
    if not shown_by:
        return
    for entry in case.project.epoch.journal.entries(lambda entry: entry.id in shown_by):
        if is_order_creation(entry) and entry.order_id != case.order.id:
            body = format_literal(request_record(case.project, entry)["request"], 4)
            lines = [
                "    # Call your own checkout instead.",
                *_call_lines(f"post(orders, json={body})", entry),
            ]
            yield RepeatedStep(start_of(entry), entry.at, lines)


def _redeliveries(case: ReproducedOrder) -> Iterator[RepeatedStep]:
    for index, delivery in enumerate(case.project.epoch.store.deliveries_of(case.order.id)):
        webhook = f'sandbox.client.webhooks(order_id)[{index}]["id"]'
        for attempt in _manual_attempts(delivery):
            lines = [f"    sandbox.client.redeliver({webhook})"]
            yield RepeatedStep(attempt.real_at, attempt.at, lines)


def _manual_attempts(delivery: Delivery) -> Iterator[WebhookAttempt]:
    """Yield manual attempts: those after the webhook's final state, or off its retry schedule."""
    state, number, retry_at = DeliveryState.PENDING, 0, delivery.created
    for attempt in delivery.delivery_attempts:
        is_new = attempt.number != number
        is_on_time = attempt.at == retry_at or (delivery.postponed and attempt.at > retry_at)
        if is_new and number and (state is not DeliveryState.PENDING or not is_on_time):
            yield attempt
        number, retry_at = attempt.number, RETRY_AFTER.after(attempt.at)
        if attempt.reply.is_delivered:
            state = DeliveryState.DELIVERED
        elif number >= ATTEMPTS_MAX and state is DeliveryState.PENDING:
            state = DeliveryState.FAILED


def _fault_lines(case: ReproducedOrder) -> Iterator[str]:
    """Yield the faults that affected the shop."""
    webhooks, faults = _webhook_rules(case), list(_request_rules(case))
    given = {"faults": faults, "webhooks": webhooks}
    more = ", ".join(f"{name}={format_literal(rules, 4)}" for name, rules in given.items() if rules)
    if more:
        yield f"    sandbox.client.faults({more})"


def _webhook_rules(case: ReproducedOrder) -> list[Rule]:
    """Return one rule for all webhooks if the same effect applied to all, or one per status and attempt."""
    effects: dict[tuple[str, int], Rule | None] = {}
    for delivery in case.deliveries:
        for number, attempts in groupby(delivery.attempts, lambda attempt: attempt.number):
            if number != MANUAL_ATTEMPT:
                effects.setdefault((delivery.status, number), _effect(delivery, list(attempts)))
    values = list(effects.values())
    if values and values[0] and values.count(values[0]) == len(values):
        return [{"then": values[0]}]
    return [
        {"when": {"status": status, "attempt": number}, "then": effect}
        for (status, number), effect in effects.items()
        if effect
    ]


def _effect(delivery: Delivery, attempts: Sequence[WebhookAttempt]) -> Rule | None:
    """Return the effect of a fault on an attempt, which may have several copies; None if it had no fault."""
    first = attempts[0]
    if first.is_withheld:
        if first.reply.status is not None:
            return Answer(first.reply.status).document
        return Timeout().document if first.reply.error else Drop().document
    if len(attempts) > 1:
        return Duplicate(len(attempts)).document
    if not delivery.postponed:
        return None
    before = next((each for each in delivery.attempts if each.number == first.number - 1), None)
    late = first.at - (RETRY_AFTER.after(before.at) if before is not None else delivery.created)
    if late >= ONE_SECOND:
        return Delay(Period.of(late)).document
    return Swap().document if before is None else None


def _request_rules(case: ReproducedOrder) -> Iterator[Rule]:
    """Yield a fault for each affected call; ``nth`` counts the calls with the same method and path."""
    counts: Counter[tuple[str, str]] = Counter()
    limited: set[tuple[str, str]] = set()
    for entry in sorted(case.entries, key=start_of):
        key = entry.method, _path_pattern(entry.path)
        counts[key] += 1
        if entry.fault is None or not entry.fault.changes_response or key in limited:
            continue
        when: Rule = {"method": entry.method, "path": key[1]}
        if isinstance(entry.fault.effect, RateLimit):
            limited.add(key)
        else:
            when["nth"] = counts[key]
        yield {"when": when, "then": entry.fault.document}


def _path_pattern(path: str) -> str:
    return "/".join("*" if fnmatchcase(part, "*-*-*-*-*") else part for part in path.split("/"))


def creation_of(project: Project, order: Order) -> LoggedRequest | None:
    """Find the creation request of an order; None if there was none, or the journal dropped it."""
    return next(project.epoch.journal.entries(is_order_creation, (order.id,)), None)


def creation_body(project: Project, order: Order, created: LoggedRequest | None) -> dict[str, Any] | None:
    """Return the body of the request that ``created`` an order, or of its manual creation.

    None if the journal dropped the body, or the body contains secrets.
    """
    if created is not None:
        body = request_record(project, created)["request"]
    else:
        actions = project.epoch.journal.actions(frozenset((order.id,)))
        body = next((performed.how.get("order") for performed in actions if performed.action == CREATE), None)
    return dict(body) if isinstance(body, Mapping) and MASK not in json.dumps(body) else None


def is_order_creation(entry: LoggedRequest) -> bool:
    """Whether a request created an order, even if its response was lost."""
    return entry.path.rstrip("/") == "/v1/orders" and entry.method == "POST" and entry.order_id is not None


def replayed_action_lines(performed: PerformedAction) -> Iterator[str]:
    """Yield the lines to repeat an action; a merchant's manual action becomes an API call."""
    how = {"amount" if name == "amount_cents" else name: value for name, value in performed.how.items()}
    if performed.actor != MERCHANT_ACTOR:
        more = "".join(f", {name}={value!r}" for name, value in how.items())
        yield f"    sandbox.act(order_id, {performed.actor!r}, {performed.action!r}{more})"
    elif performed.action == "cancel":
        yield from asserted_call_lines('delete(f"{orders}{order_id}/")')
    elif performed.action == "refund":
        yield from asserted_call_lines(
            f'post(f"{{orders}}{{order_id}}/refunds/", json={format_literal(how, 4)})'
        )
    else:
        yield ATTEMPT_LINE
        url = f'f"{{orders}}{{order_id}}/transactions/{{attempt}}/{performed.action}s/amount/"'
        yield from asserted_call_lines(f"post({url}, json={format_literal(how, 4)})")


def asserted_call_lines(call: str, status: int | None = None) -> Iterator[str]:
    """Yield a call and an assertion of its status; None asserts that the call succeeded."""
    yield f"    answer = sandbox.session.{call}"
    yield f"    assert answer.{'ok' if status is None else f'status_code == {status}'}, answer.text"


def replayed_call(project: Project, order: Order, entry: LoggedRequest) -> tuple[list[str], str]:
    """Return the lines before a replayed request, and the request with the ids of the new order.

    The path after the id of the order is a quoted string.
    """
    rest = entry.path.partition(order.id)[2]
    url, needed = f"orders + order_id + {rest!r}", []
    for transaction_id in (attempt.id for attempt in order.transactions):
        before, match, after = rest.partition(transaction_id)
        if match:
            needed = [ATTEMPT_LINE]
            url = f"orders + order_id + {before!r} + attempt + {after!r}"
    body = request_record(project, entry)["request"]
    sent = f", json={format_literal(body, 4)}" if body is not None else ""
    return needed, f"{entry.method.lower()}({url}{sent})"


def format_literal(value: Any, indent: int) -> str:
    """Format a value as Python source, over several lines if it is long."""
    short = repr(value)
    if len(short) <= LINE_LENGTH or not isinstance(value, dict | list) or not value:
        return short
    inner = " " * (indent + 4)
    if isinstance(value, dict):
        lines = [f"{inner}{key!r}: {format_literal(item, indent + 4)}," for key, item in value.items()]
        return "\n".join(["{", *lines, f"{' ' * indent}}}"])
    lines = [f"{inner}{format_literal(item, indent + 4)}," for item in value]
    return "\n".join(["[", *lines, f"{' ' * indent}]"])
