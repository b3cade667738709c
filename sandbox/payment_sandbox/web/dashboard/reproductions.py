"""A test that fails as long as a shop makes a mistake with an order, and passes once the shop is mended."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from payment_sandbox.kernel.masking import MASK
from payment_sandbox.kernel.times import Period, timestamp
from payment_sandbox.operations.review import (
    VAULT_TOKEN,
    Finding,
    began,
    calls_during,
    is_answer_lost,
)
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.webhooks import (
    DELIVERIES_MAX,
    MANUAL_ATTEMPT,
    RETRY_AFTER,
    Delivery,
    DeliveryState,
    WebhookAttempt,
)
from payment_sandbox.projects.default_scenario import DEFAULT
from payment_sandbox.projects.journal import RETURN, JournalEntry
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.scenarios.effects import Answer, Delay, Drop, Duplicate, RateLimit, Swap, Timeout
from payment_sandbox.web.answers.history import request_record
from payment_sandbox.web.dashboard.copies import (
    ONE_SECOND,
    created_with,
    creation_of,
    is_order_made,
    is_replayed,
    last_moment,
    literal,
    period,
    replayed_action,
    replayed_call,
)

Rule = dict[str, Any]
"""A rule of faults, an effect, or a body, as JSON."""
NOT_REPRODUCED: Final = ("SET-03", "FLOW-09", "HOOK-03", "HOOK-04")
"""Rules of mistakes with two clicks at once, with the card of another order, and with addresses."""
A_DAY_LATER: Final = ("HOOK-12", "HOOK-13")
"""Rules of what is a mistake only a day after the payment."""
NEVER: Final = datetime.min.replace(tzinfo=UTC)
BY_A_JOB: Final = (*A_DAY_LATER, "CAP-03")
BY_A_READ: Final = "HOOK-02"
BY_A_RETURN: Final = "FLOW-15"
PATH: Final = "/webhook"


class RepeatedStep(NamedTuple):
    """What the test repeats at a moment."""

    real_at: datetime
    at: datetime
    lines: Sequence[str]


class ReproducedOrder(NamedTuple):
    """An order with its mistakes, and everything about it that a test has to repeat."""

    project: Project
    order: Order
    mistakes: Sequence[Finding]
    body: Rule
    created: RepeatedStep
    entries: Sequence[JournalEntry]
    deliveries: Sequence[Delivery]

    @property
    def rules(self) -> set[str]:
        """The rules of the mistakes."""
        return {mistake.rule for mistake in self.mistakes}

    @property
    def shown_by(self) -> set[str]:
        """The ids of the records that show the mistakes."""
        return {each for mistake in self.mistakes for each in mistake.shown_by}


def reproduction(project: Project, order: Order, findings: Iterable[Finding]) -> str | None:
    """The source of the test; None if there is no mistake that a test can repeat.

    The shop is a fixture of the user: what it does while it handles webhooks is left to it, and all else is
    repeated at the same sandbox times after the creation.
    """
    mistakes = [each for each in findings if each.is_open]
    case = _case(project, order, mistakes) if mistakes else None
    return "\n".join(_lines(case)) + "\n" if case is not None and case.mistakes else None


def _case(project: Project, order: Order, mistakes: Sequence[Finding]) -> ReproducedOrder | None:
    created = creation_of(project, order)
    body = created_with(project, order, created)
    if body is None:
        return None
    about = (order.id, *(refund.refund_id for refund in order.refunds))
    deliveries = [each for id_ in about for each in project.epoch.store.deliveries_of(id_)]
    entries = list(project.epoch.journal.entries(lambda entry: _is_about(entry, about)))
    known = _repeatable(mistakes, entries)
    if created is not None:
        made = RepeatedStep(began(created), created.at, list(_creation(created)))
    else:
        made = RepeatedStep(_first_moment(project, order), order.created, list(_creation(None)))
    return ReproducedOrder(project, order, known, body, made, entries, deliveries)


def _repeatable(mistakes: Iterable[Finding], entries: Iterable[JournalEntry]) -> list[Finding]:
    """The mistakes that a test can repeat: their calls name no secret, and no card of another order."""
    secret = {entry.id for entry in entries if VAULT_TOKEN in entry.request or MASK.encode() in entry.request}
    return [each for each in mistakes if each.rule not in NOT_REPRODUCED and secret.isdisjoint(each.shown_by)]


def _is_about(entry: JournalEntry, about: Sequence[str]) -> bool:
    return entry.order_id in about or any(f"/orders/{order_id}/" in entry.path for order_id in about)


def _first_moment(project: Project, order: Order) -> datetime:
    """When an order was made by hand, in real time; before all that is known if that is forgotten."""
    reached = (each.real_at for each in project.epoch.journal.statuses if each.order_id == order.id)
    return min(reached, default=NEVER)


def _creation(created: JournalEntry | None) -> Iterator[str]:
    yield "    # Call your own checkout instead, so that your shop knows the order."
    yield from _asked("post(orders, json=body)", created)
    yield '    order_id = sandbox.client.orders(limit=1)[0]["id"]'


def _lines(case: ReproducedOrder) -> Iterator[str]:
    steps = sorted(_steps(case), key=lambda step: step.real_at)
    settings, state = _settings(case, steps[0].at), case.project.epoch.state
    if any("suppress(" in line for step in steps for line in step.lines):
        yield "from contextlib import suppress"
        yield ""
    yield "import pytest"
    yield ""
    yield ""
    yield f"@pytest.mark.payment_settings({settings})"
    yield f"def test_order_{case.order.id[:8]}(payment_sandbox{', shop' if case.deliveries else ''}):"
    yield from _docstring(case)
    yield "    sandbox = payment_sandbox"
    if case.deliveries:
        yield from _shop(case)
    if state.scenario.name != DEFAULT:
        yield f"    sandbox.scenario({state.scenario.name!r})"
    yield from _faults(case)
    yield '    orders = f"{sandbox.base_url}/v1/orders/"'
    body = {name: value for name, value in case.body.items() if name != "webhook_url" or not case.deliveries}
    yield f"    body = {literal(body, 4)}"
    yield from _timed(steps, _end(case))
    yield "    sandbox.client.wait(idle=True)"
    yield "    sandbox.review().assert_clean()"


def _settings(case: ReproducedOrder, start: datetime) -> str:
    settings = case.project.epoch.state.base_settings
    timing = f', webhook_timing="{BEFORE_RESPONSE}"' if settings.webhook_timing == BEFORE_RESPONSE else ""
    return f'clock="frozen@{timestamp(start)}", mode="{settings.mode}"{timing}'


def _docstring(case: ReproducedOrder) -> Iterator[str]:
    """What is wrong today, and what the test needs."""
    yield '    """Fails until your handler is mended.'
    yield ""
    for problem in dict.fromkeys(mistake.problem for mistake in case.mistakes):
        text = problem.replace("\\", "/").replace('"', "'")
        yield f"    {text[:1].upper()}{text[1:]}."
    if case.deliveries:
        yield ""
        yield "    The fixture shop is your application, or the address of its webhooks in another process;"
        yield "    it calls payment_sandbox.base_url with payment_sandbox.api_key."
    if case.rules.intersection(BY_A_JOB):
        yield '    If a job of your shop mends it, the fixture runs it: payment_sandbox.every("PT1H", job).'
    yield '    """'


def _shop(case: ReproducedOrder) -> Iterator[str]:
    path = urlsplit(case.deliveries[0].url).path or PATH
    yield "    if isinstance(shop, str):"
    yield "        sandbox.client.change_settings(webhook_url=shop)"
    yield "    else:"
    yield f"        sandbox.deliver_to(shop, {'http://testserver' + path!r})"


def _timed(steps: Sequence[RepeatedStep], end: datetime) -> Iterator[str]:
    """The lines of all steps, with the clock advanced in between."""
    now = steps[0].at
    for step in [*steps, RepeatedStep(end, end, ())]:
        if step.at - now >= ONE_SECOND:
            yield f"    sandbox.clock.advance({period(step.at - now)!r})"
            now = step.at
        yield from step.lines


def _end(case: ReproducedOrder) -> datetime:
    """When the last thing happened; a day after the payment if the mistake is one only then."""
    end = last_moment(case.project, case.order)
    if case.rules.isdisjoint(A_DAY_LATER):
        return end
    reached = case.project.epoch.journal.statuses
    own = [each.at for each in reached if each.order_id == case.order.id and each.payment_method is None]
    return max(end, max(own, default=end) + timedelta(days=1))


def _steps(case: ReproducedOrder) -> Iterator[RepeatedStep]:
    """What happened to the order by other hands than the shop's handler of webhooks."""
    yield case.created
    handled = _handled(case)
    for entry in case.entries:
        if entry.id not in handled and not is_order_made(entry) and _is_repeated(case, entry):
            yield RepeatedStep(began(entry), entry.at, list(_call(case, entry)))
    yield from _other_creations(case)
    for taken in case.project.epoch.journal.actions(frozenset((case.order.id,))):
        if is_replayed(taken):
            yield RepeatedStep(taken.real_at, taken.at, list(replayed_action(taken)))
        elif taken.action == RETURN and BY_A_RETURN in case.rules and case.deliveries:
            yield RepeatedStep(taken.real_at, taken.at, ["    sandbox.browser(shop).returns(order_id)"])
    yield from _redeliveries(case)


def _handled(case: ReproducedOrder) -> set[str]:
    """The ids of the calls that the shop made until it answered webhooks; if none, those shortly after."""
    spans = [
        (attempt.real_at, attempt.real_at + timedelta(milliseconds=attempt.reply.duration_ms))
        for delivery in case.deliveries
        for attempt in delivery.attempts
        if not attempt.is_withheld
    ]
    before_answers = {
        entry.id for entry in case.entries if any(begin <= began(entry) <= end for begin, end in spans)
    }
    handled = before_answers or calls_during(case.deliveries, case.entries)
    return handled - _retries(case.entries, handled)


def _retries(entries: Iterable[JournalEntry], handled: Container[str]) -> set[str]:
    """The ids of calls after a lost response, which are of those who made the first call."""
    lost: set[tuple[str, str, bytes]] = set()
    retries: set[str] = set()
    for entry in sorted(entries, key=began):
        call = entry.method, entry.path, entry.request
        if call in lost:
            retries.add(entry.id)
        elif entry.id not in handled and is_answer_lost(entry):
            lost.add(call)
    return retries


def _is_repeated(case: ReproducedOrder, entry: JournalEntry) -> bool:
    """Whether the test makes a call: the reads of a shop change nothing, unless they are the mistake."""
    return entry.method != "GET" or (BY_A_READ in case.rules and entry.id in case.shown_by)


def _call(case: ReproducedOrder, entry: JournalEntry) -> Iterator[str]:
    before, call = replayed_call(case.project, case.order, entry)
    yield from before
    if entry.id in case.shown_by:
        yield "    # Call your own code instead, which made this call."
    yield from _asked(call, entry)


def _asked(call: str, entry: JournalEntry | None) -> Iterator[str]:
    """A call; one without a response is an error of the connection."""
    if entry is not None and entry.fault is not None and entry.fault.loses_response:
        yield "    with suppress(OSError):"
        yield f"        sandbox.session.{call}"
    else:
        yield f"    sandbox.session.{call}"


def _other_creations(case: ReproducedOrder) -> Iterator[RepeatedStep]:
    """The creations of other orders that are a part of the mistake."""
    for entry in case.project.epoch.journal.entries(lambda entry: entry.id in case.shown_by):
        if is_order_made(entry) and entry.order_id != case.order.id:
            body = literal(request_record(case.project, entry)["request"], 4)
            lines = ["    # Call your own checkout instead.", *_asked(f"post(orders, json={body})", entry)]
            yield RepeatedStep(began(entry), entry.at, lines)


def _redeliveries(case: ReproducedOrder) -> Iterator[RepeatedStep]:
    """The webhooks that somebody sent again by hand."""
    for index, delivery in enumerate(case.project.epoch.store.deliveries_of(case.order.id)):
        webhook = f'sandbox.client.webhooks(order_id)[{index}]["id"]'
        for attempt in _by_hand(delivery):
            lines = [f"    sandbox.client.redeliver({webhook})"]
            yield RepeatedStep(attempt.real_at, attempt.at, lines)


def _by_hand(delivery: Delivery) -> Iterator[WebhookAttempt]:
    """The attempts that no schedule made: after the webhook had ended, or at another time than a retry."""
    state, number, retry_at = DeliveryState.PENDING, 0, delivery.created
    for attempt in delivery.tries:
        is_new = attempt.number != number
        if is_new and number and (state is not DeliveryState.PENDING or attempt.at != retry_at):
            yield attempt
        number, retry_at = attempt.number, RETRY_AFTER.after(attempt.at)
        if attempt.reply.is_delivered:
            state = DeliveryState.DELIVERED
        elif number >= DELIVERIES_MAX and state is DeliveryState.PENDING:
            state = DeliveryState.FAILED


def _faults(case: ReproducedOrder) -> Iterator[str]:
    """The faults that changed what the shop saw, as the history shows them."""
    webhooks, faults = _webhook_rules(case), list(_request_rules(case))
    given = {"faults": faults, "webhooks": webhooks}
    more = ", ".join(f"{name}={literal(rules, 4)}" for name, rules in given.items() if rules)
    if more:
        yield f"    sandbox.client.faults({more})"


def _webhook_rules(case: ReproducedOrder) -> list[Rule]:
    """One rule for all webhooks if it was one, else one for each status and attempt."""
    effects: dict[tuple[str, int], Rule | None] = {}
    for delivery in case.deliveries:
        for number, attempts in groupby(delivery.attempts, lambda attempt: attempt.number):
            if number != MANUAL_ATTEMPT:
                effects.setdefault((delivery.status, number), _effect(delivery, list(attempts)))
    different = list(effects.values())
    if different and different[0] and different.count(different[0]) == len(different):
        return [{"then": different[0]}]
    return [
        {"when": {"status": status, "attempt": number}, "then": effect}
        for (status, number), effect in effects.items()
        if effect
    ]


def _effect(delivery: Delivery, attempts: Sequence[WebhookAttempt]) -> Rule | None:
    """What a fault did to an attempt, which is several ones if it came as copies; None if it did nothing."""
    first = attempts[0]
    if first.is_withheld:
        if first.reply.status is not None:
            return Answer(first.reply.status).document
        return Timeout().document if first.reply.error else Drop().document
    if len(attempts) > 1:
        return Duplicate(len(attempts)).document
    if delivery.postponed and first.number == 1:
        late = first.at - delivery.created
        return Delay(Period.of(late)).document if late >= ONE_SECOND else Swap().document
    return None


def _request_rules(case: ReproducedOrder) -> Iterator[Rule]:
    """A fault for each call that met one, counted among the calls like it."""
    asked: Counter[tuple[str, str]] = Counter()
    limited: set[tuple[str, str]] = set()
    for entry in sorted(case.entries, key=began):
        like = entry.method, _glob(entry.path)
        asked[like] += 1
        if entry.fault is None or not entry.fault.changes_response or like in limited:
            continue
        when: Rule = {"method": entry.method, "path": like[1]}
        if isinstance(entry.fault.effect, RateLimit):
            limited.add(like)
        else:
            when["nth"] = asked[like]
        yield {"when": when, "then": entry.fault.document}


def _glob(path: str) -> str:
    """A path with its ids as stars."""
    return "/".join("*" if fnmatchcase(part, "*-*-*-*-*") else part for part in path.split("/"))
