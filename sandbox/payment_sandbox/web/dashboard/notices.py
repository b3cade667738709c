"""What a page says after a form was sent: what was done, or why it was refused, with what was typed."""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from secrets import token_urlsafe
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from payment_sandbox.kernel.times import Period
from payment_sandbox.operations.advance import AdvanceResult
from payment_sandbox.operations.in_words import in_euros
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.webhooks import Reply
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot

NOTICES_MAX: Final = 50
NAME: Final = "notice"  # in the address of the page that shows it
MOMENT: Final = "at"  # in the address of an order as it was earlier
TYPED: Final = ("action", "amount", "description", "url", "body", "after")  # what a form shows again
TYPED_MAX: Final = 16_384
ORDERS_SHOWN: Final = 5
WORDS_OF: Final = {
    "expiry": ("expiry", "expiries"),
    "page-expiry": ("payment page expired", "payment pages expired"),
    "authorization-expiry": ("authorization ran out", "authorizations ran out"),
    "delayed-capture": ("capture", "captures"),
}


class Notice(NamedTuple):
    """A sentence after a form was sent; of a refusal, with the form as it was typed."""

    text: str
    orders: Sequence[str] = ()  # that it is about
    is_refusal: bool = False
    typed: Mapping[str, str] = {}
    is_move: bool = False  # of the clock; it can be taken back
    aim: Mapping[str, str] = {}  # of a move that stopped early, to go on with it


def shown_euros(cents: int | None) -> str:
    """An amount for people."""
    return "" if cents is None else euros(cents)


NOTICES: Final[Slot[OrderedDict[str, Notice]]] = Slot(OrderedDict)
"""The newest notices of a project, each by a random name."""


def with_notice(project: Project, address: str, notice: Notice) -> str:
    """The address of a page of the project that shows this notice."""
    notices = project.slots.of(NOTICES)
    name = token_urlsafe(6)
    notices[name] = notice
    while len(notices) > NOTICES_MAX:
        notices.popitem(last=False)
    parts = urlsplit(address)
    query = [pair for pair in parse_qsl(parts.query) if pair[0] != NAME] + [(NAME, name)]
    return urlunsplit(parts._replace(query=urlencode(query)))


def without_notice(address: str) -> str:
    """The address of a page without its notice, as it is now, to come back to."""
    parts = urlsplit(address)
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in (NAME, MOMENT)]
    return urlunsplit(parts._replace(query=urlencode(query)))


def notice_for(project: Project, name: str | None) -> Notice | None:
    """The notice that the address of a page names, if it is one of this project's."""
    return project.slots.of(NOTICES).get(name or "")


def moved(project: Project, done: AdvanceResult, aim: Mapping[str, str]) -> Notice:
    """What a move of the clock did; of one that stopped early, what it waited for, and how it goes on."""
    happened = _counted(done.events)
    orders = list(dict.fromkeys(event["order_id"] for event in done.events if event.get("order_id")))
    to = short_moment(done.ended, done.begun)
    if not done.stopped:
        return Notice(f"Moved to {to}: {happened}.", orders[:ORDERS_SHOWN], is_move=True)
    if done.by_hand:
        return Notice(
            f"Stopped at {to} as you asked: {happened} so far.", orders[:ORDERS_SHOWN], is_move=True
        )
    text = f"Stopped at {to}: {_waited_for(project, done)}: go on, or undo."
    return Notice(text, (), True, is_move=True, aim=_still_to_go(done, aim))


def _waited_for(project: Project, done: AdvanceResult) -> str:
    """Why a move took so long: the shop's time for each webhook, as far as it has answered any."""
    took_ms = [
        attempt.reply.duration_ms
        for delivery in project.epoch.store.deliveries()
        for attempt in delivery.attempts
        if attempt.at >= done.begun
    ]
    webhooks = len(took_ms) + len(done.under_way)
    if not took_ms:
        return f"your shop has not answered {_these(webhooks)} yet"
    return f"your shop takes {sum(took_ms) / len(took_ms) / 1000:.2g} s for each of {_these(webhooks)}"


def _these(webhooks: int) -> str:
    return f"{webhooks} webhook{'' if webhooks == 1 else 's'}"


def _still_to_go(done: AdvanceResult, aim: Mapping[str, str]) -> Mapping[str, str]:
    """The same aim, from where the move stopped."""
    if "by" not in aim:
        return aim
    return {"to": Period.parse(aim["by"]).after(done.begun).isoformat()}


def _counted(events: Sequence[Mapping[str, Any]]) -> str:
    """What happened, counted by kind."""
    kinds = Counter(str(event.get("kind")) for event in events)
    if not kinds:
        return "nothing was due"
    return ", ".join(f"{count} {_words(kind, count)}" for kind, count in kinds.most_common())


def _words(kind: str, count: int) -> str:
    plain = kind.replace("-", " ")
    one, many = WORDS_OF.get(kind, (plain, f"{plain}s"))
    return one if count == 1 else many


def short_moment(moment: datetime, before: datetime) -> str:
    """A time of day; with the date if that differs."""
    return f"{moment:%H:%M:%S}" if moment.date() == before.date() else f"{moment.day} {moment:%b %H:%M}"


def answered(project: Project, order_id: str) -> Notice:
    """What the shop answered to the webhooks of an order."""
    attempts = [
        attempt for delivery in project.epoch.store.deliveries_of(order_id) for attempt in delivery.attempts
    ]
    is_bad = not attempts or not all(attempt.reply.is_delivered for attempt in attempts)
    text = " and ".join(dict.fromkeys(_answer(attempt.reply) for attempt in attempts)) or "nothing yet"
    if attempts and all(attempt.is_withheld for attempt in attempts):
        return Notice(f"A test order was paid, but your shop has heard nothing: {text}.", (order_id,), True)
    text = project.masking.text(f"A test order was paid, and your shop answered {text}.")
    return Notice(text, (order_id,), is_bad)


def _answer(reply: Reply) -> str:
    if reply.fault is None and reply.status is not None:
        return f"{reply.status} in {reply.duration_ms:.0f} ms"
    return reply.fault or reply.error or reply.warning or "no answer"


def refusal(project: Project, error: Mapping[str, Any], form: Mapping[str, str]) -> Notice:
    """Why a form was refused, with what was typed."""
    violations = [violation["message"] for violation in error["violations"]]
    text = in_euros("; ".join(dict.fromkeys(violations)) or str(error["value"]))
    typed = {name: project.masking.text(form[name])[:TYPED_MAX] for name in TYPED if name in form}
    text = project.masking.text(f"{text[:1].upper()}{text[1:]}")
    return Notice(text, (), True, typed)
