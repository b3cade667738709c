"""Notices shown after a form is submitted: the result, or the reason for a refusal and the rejected input."""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from secrets import token_urlsafe
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from payment_sandbox.operations.advance import AdvanceResult
from payment_sandbox.orders.amounts import convert_cents, euros
from payment_sandbox.orders.webhooks import Reply
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot

NOTICES_MAX: Final = 50
NOTICE_PARAMETER: Final = "notice"  # the query parameter with the name of a notice
RESTORED_FIELDS: Final = ("action", "amount", "description", "url", "body", "after")  # from a refused form
INPUT_LENGTH_MAX: Final = 16_384
ORDERS_SHOWN: Final = 5
EVENT_WORDS: Final = {
    "expiry": ("expiry", "expiries"),
    "page-expiry": ("payment page expired", "payment pages expired"),
    "authorization-expiry": ("authorization expired", "authorizations expired"),
    "delayed-capture": ("capture", "captures"),
}


class Notice(NamedTuple):
    """A message after the submission of a form; a refusal also contains the input."""

    text: str
    orders: Sequence[str] = ()  # the ids of the affected orders
    is_refusal: bool = False
    inputs: Mapping[str, str] = {}


def format_optional_euros(cents: int | None) -> str:
    """Format an amount in euros; empty for None."""
    return "" if cents is None else euros(cents)


NOTICES: Final[Slot[OrderedDict[str, Notice]]] = Slot(OrderedDict)
"""The newest notices of a project, by random names."""


def with_notice(project: Project, address: str, notice: Notice) -> str:
    """Store a notice, and add its name to the address of the page."""
    notices = project.slots.of(NOTICES)
    name = token_urlsafe(6)
    notices[name] = notice
    while len(notices) > NOTICES_MAX:
        notices.popitem(last=False)
    parts = urlsplit(address)
    query = [pair for pair in parse_qsl(parts.query) if pair[0] != NOTICE_PARAMETER] + [
        (NOTICE_PARAMETER, name)
    ]
    return urlunsplit(parts._replace(query=urlencode(query)))


def without_notice(address: str) -> str:
    """Remove the notice from the address of a page."""
    parts = urlsplit(address)
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != NOTICE_PARAMETER]
    return urlunsplit(parts._replace(query=urlencode(query)))


def notice_for(project: Project, name: str | None) -> Notice | None:
    """Find a notice of the project by its name."""
    return project.slots.of(NOTICES).get(name or "")


def move_notice(project: Project, result: AdvanceResult) -> Notice:
    """Describe a clock move; if it stopped early, add the reason."""
    happened = []
    for kind, count in Counter(str(event.get("kind")) for event in result.events).most_common():
        plain = kind.replace("-", " ")
        happened.append(f"{count} {EVENT_WORDS.get(kind, (plain, f'{plain}s'))[count != 1]}")
    events = ", ".join(happened) or "nothing was due"
    orders = list(dict.fromkeys(event["order_id"] for event in result.events if event.get("order_id")))
    to = short_moment(result.ended, result.begun)
    if not result.stopped:
        return Notice(f"Moved to {to}: {events}.", orders[:ORDERS_SHOWN])
    if result.by_hand:
        return Notice(f"Stopped at {to} as you asked: {events} so far.", orders[:ORDERS_SHOWN])
    return Notice(f"Stopped at {to}: {_stop_reason(project, result)}.", (), True)


def _stop_reason(project: Project, result: AdvanceResult) -> str:
    """Explain a slow move by the shop's average response time to webhooks, if any were answered."""
    took_ms = [
        attempt.reply.duration_ms
        for delivery in project.epoch.store.deliveries()
        for attempt in delivery.attempts
        if attempt.at >= result.begun
    ]
    count = len(took_ms) + len(result.under_way)
    webhooks = f"{count} webhook{'' if count == 1 else 's'}"
    if not took_ms:
        return f"your shop has not answered {webhooks} yet"
    return f"your shop takes {sum(took_ms) / len(took_ms) / 1000:.2g} s for each of {webhooks}"


def short_moment(moment: datetime, before: datetime) -> str:
    """Format a time of day, with the date if it differs from that of ``before``."""
    return f"{moment:%H:%M:%S}" if moment.date() == before.date() else f"{moment.day} {moment:%b %H:%M}"


def answer_notice(project: Project, order_id: str) -> Notice:
    """Describe the shop's answers to the webhooks of an order."""
    attempts = [
        attempt for delivery in project.epoch.store.deliveries_of(order_id) for attempt in delivery.attempts
    ]
    is_bad = not attempts or not all(attempt.reply.is_delivered for attempt in attempts)
    text = (
        " and ".join(dict.fromkeys(_describe_reply(attempt.reply) for attempt in attempts)) or "nothing yet"
    )
    if attempts and all(attempt.is_withheld for attempt in attempts):
        return Notice(f"A test order was paid, but your shop received no webhook: {text}.", (order_id,), True)
    text = project.masking.mask_text(f"A test order was paid, and your shop answered {text}.")
    return Notice(text, (order_id,), is_bad)


def _describe_reply(reply: Reply) -> str:
    if reply.fault is None and reply.status is not None:
        return f"{reply.status} in {reply.duration_ms:.0f} ms"
    return reply.fault or reply.error or reply.warning or "no answer"


def refusal_notice(project: Project, error: Mapping[str, Any], form: Mapping[str, str]) -> Notice:
    """Explain the refusal of a form, and store its input."""
    violations = [violation["message"] for violation in error["violations"]]
    text = convert_cents("; ".join(dict.fromkeys(violations)) or str(error["value"]))
    mask_text = project.masking.mask_text
    inputs = {name: mask_text(form[name])[:INPUT_LENGTH_MAX] for name in RESTORED_FIELDS if name in form}
    text = mask_text(f"{text[:1].upper()}{text[1:]}")
    return Notice(text, (), True, inputs)
