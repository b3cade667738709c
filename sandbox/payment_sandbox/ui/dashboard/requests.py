"""The calls of the shop and the webhooks to it: one list, and a page for each."""

import heapq
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice, takewhile
from typing import Final, NamedTuple

from flask import Response

from payment_sandbox.delivery.sending import WEBHOOK_HEADERS, standard_body, standard_url
from payment_sandbox.judge.evidence import status_in
from payment_sandbox.judge.history import describe_call, refusal_message, short_reason
from payment_sandbox.judge.standing import format_moment_of_day
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.agenda import applies
from payment_sandbox.operations.recipes import play
from payment_sandbox.operations.redelivery import (
    deliver_unsent,
    find_delivery,
    redeliver,
    unsent_of,
    unsent_webhooks,
)
from payment_sandbox.orders.commands import AttemptDelivery
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.orders.webhooks import ATTEMPTS_MAX, LOST, Delivery, DeliveryState
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import ERROR_STATUS_MIN, LoggedRequest, ReachedStatus, number_of
from payment_sandbox.projects.order_logs import OrderLog, order_logs
from payment_sandbox.projects.project import Project
from payment_sandbox.ui.dashboard.frame import (
    FORM_FACTS,
    VIEW_FACTS,
    enter,
    form_page,
    show,
    url,
    valid_query,
)
from payment_sandbox.ui.dashboard.front_page import create_manual_order
from payment_sandbox.ui.dashboard.notices import Notice, answer_notice, with_notice
from payment_sandbox.ui.dashboard.snippets import curl, format_body
from payment_sandbox.web.answers.control import delivery_record, journal_record, journal_summary
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.control import COMMANDS
from payment_sandbox.web.routes import stated

ROWS_SHOWN: Final = 50
ANSWER_SECONDS: Final = 12.0  # the longest possible response times of two webhooks
CUT: Final = "cut"
OUTCOME_LABELS: Final = {
    DeliveryState.PENDING.value: "pending",
    DeliveryState.DELIVERED.value: "delivered",
    DeliveryState.FAILED.value: "failed",
    LOST: "lost (fault)",
    DeliveryState.UNSENT.value: "not sent",
}
DELAY_LABELS: Final = {"PT1M": "a minute", "PT10M": "ten minutes", "PT1H": "an hour", "P1D": "a day"}
CALLS, REFUSED, WEBHOOKS, UNDELIVERED = "calls", "refused", "webhooks", "undelivered"
SHOWN: Final = {
    "all": "All",
    CALLS: "Calls",
    REFUSED: "Refused calls",
    WEBHOOKS: "Webhooks",
    UNDELIVERED: "Undelivered webhooks",
}
"""The filters of the list, with their labels."""


class RequestQuery(NamedTuple):
    """The query of the list: a text, a filter, and the entries at its ends."""

    text: str = ""
    show: str = ""  # one of SHOWN
    before: str = ""
    top: str = ""  # the first row; newer ones are counted


Entry = LoggedRequest | Delivery
"""An entry of the list."""


def _texts(log: OrderLog) -> list[tuple[str, str]]:
    """Return the searchable text of each call and each webhook, by its id."""
    numbers = {order.id: order.merchant_order_id or "" for order in log.orders.values()}
    webhooks = {each.id: each for each in (*log.webhooks, *log.derive(unsent_of))}
    texts: list[tuple[Entry, tuple[str, ...]]] = [
        (each, (f"{each.status or CUT}", f"{each.method} {each.path}?{each.query}", each.rule or ""))
        for each in log.of(LoggedRequest)
    ]
    texts += [(each, (each.status, OUTCOME_LABELS[each.outcome])) for each in webhooks.values()]
    return [
        (entry.id, "\n".join((*words, order_id, numbers.get(order_id, ""))).casefold())
        for entry, words in texts
        for order_id in [entry.order_id or ""]
    ]


def _newest_first(project: Project, query: RequestQuery, unsent: Sequence[Delivery]) -> Iterator[Entry]:
    """Yield the calls and the webhooks of the list; a webhook has the place of its status."""
    epoch, text = project.epoch, query.text.casefold()
    logs = order_logs(epoch).values() if text else ()
    texts = chain.from_iterable(log.derive(_texts) for log in logs)
    matching = {entry_id for entry_id, searched in texts if text in searched}

    def is_listed(entry: Entry) -> bool:
        if isinstance(entry, LoggedRequest):
            is_refused = entry.status is None or entry.status >= ERROR_STATUS_MIN
            is_shown = query.show in ("", "all", CALLS) or (query.show == REFUSED and is_refused)
        else:
            is_behind = entry.outcome != DeliveryState.DELIVERED
            is_shown = query.show in ("", "all", WEBHOOKS) or (query.show == UNDELIVERED and is_behind)
        return is_shown and (not text or entry.id in matching)

    def place(entry: Entry) -> int:
        if isinstance(entry, LoggedRequest):
            return number_of(entry)
        reached = epoch.journal.of(ReachedStatus, (entry.order_id,))
        return max((number_of(each) for each in reached if each.status == entry.status), default=0)

    lists: list[Sequence[Entry]] = [
        epoch.journal.of(LoggedRequest),
        epoch.store.deliveries(),
        [each for each in unsent if not each.url],
    ]
    listed = (filter(is_listed, reversed(entries)) for entries in lists)
    return heapq.merge(*listed, key=place, reverse=True)


def _find_entry(project: Project, entry_id: str) -> Entry | None:
    epoch = project.epoch
    entry = epoch.store.delivery(entry_id) or epoch.journal.find(entry_id)
    unsent = (each for each in unsent_webhooks(epoch) if each.id == entry_id and not each.url)
    return entry or next(unsent, None)


@stated(**VIEW_FACTS)
def get_requests_view(call: Call, project_id: str) -> Response:
    """Show the calls and the webhooks, newest first."""
    project = enter(call, project_id)
    find = partial(_find_entry, project)
    args, remark = valid_query(call.request.args, before=find, top=find, show=SHOWN.__contains__)
    query = RequestQuery(**{name: args.get(name, "").strip() for name in RequestQuery._fields})
    unsent = unsent_webhooks(project.epoch)
    entries = _newest_first(project, query, unsent)
    if query.before:
        next((entry for entry in entries if entry.id == query.before), None)
    top = [each for each in [find(query.top)] if each] if query.top else []
    newer = list(takewhile(lambda entry: entry.id != query.top, entries)) if top else []
    page = [*top, *islice(entries, ROWS_SHOWN + 1 - len(top))]
    next_at = _next_attempts(project.epoch)
    return show(
        call,
        "requests",
        project,
        "requests",
        rows=[
            _call_row(project, entry)
            if isinstance(entry, LoggedRequest)
            else {"is_call": False, **_webhook_row(project, entry, next_at.get(entry.id))}
            for entry in page[:ROWS_SHOWN]
        ],
        has_more=len(page) > ROWS_SHOWN,
        dropped=project.epoch.journal.dropped_count,
        filters=SHOWN,
        query=query,
        remark=remark,
        newer=len(newer),
        outcomes=OUTCOME_LABELS,
        unsent=len(unsent),
    )


def _call_row(project: Project, entry: LoggedRequest) -> dict[str, object]:
    epoch = project.epoch
    words, status = describe_call(entry), status_in(entry)
    words = f"{words} → {status}" if words and status else words
    return {
        "is_call": True,
        **journal_summary(entry),
        "order_id": entry.order_id if epoch.store.order(entry.order_id or "") is not None else None,
        "words": short_reason(entry) if entry.rule is not None else words,
        "took_ms": _duration_ms(entry),
    }


def _webhook_row(project: Project, delivery: Delivery, next_at: datetime | None) -> dict[str, object]:
    return {
        **delivery_record(delivery, project.masking),
        "at": timestamp(delivery.created),
        "outcome": delivery.outcome,
        "next_at": next_at.isoformat() if next_at is not None else None,
        "summary": describe_delivery(delivery, next_at, project.now()),
    }


def describe_delivery(delivery: Delivery, next_at: datetime | None, now: datetime) -> str:
    """Describe the progress of a webhook in a sentence."""
    outcome, tries = delivery.outcome, delivery.delivery_attempts
    if outcome == DeliveryState.UNSENT:
        return "Not sent: no address was set."
    failed = sum(not attempt.reply.is_delivered for attempt in tries)
    if outcome == DeliveryState.PENDING:
        upcoming = "the next attempt is in flight"
        if next_at is not None:
            upcoming = f"next at {format_moment_of_day(next_at, now)}"
        return f"Pending: {failed} of {ATTEMPTS_MAX} attempts failed, {upcoming}."
    if outcome == LOST:
        return "Lost by a fault: your shop never received it, but the service considers it delivered."
    answer = "sent manually"
    if tries:
        reply = tries[-1].reply
        answer = f"your shop answered {reply.status} in {reply.duration_ms:.0f} ms"
        if reply.status is None:
            answer = reply.error or reply.warning or "no answer"
    if outcome == DeliveryState.FAILED:
        return f"Failed after {failed} attempts: {answer}."
    return f"Delivered{f' on attempt {tries[-1].number}' if failed else ''}: {answer}."


def _next_attempts(epoch: Epoch) -> dict[str, datetime]:
    next_at: dict[str, datetime] = {}
    for due in epoch.timeline:
        if type(due.item) is AttemptDelivery and applies(epoch, due):
            next_at.setdefault(due.item.delivery_id, due.at)
    return next_at


def _duration_ms(entry: LoggedRequest) -> float | None:
    if entry.real_at is None or entry.answered_at is None:
        return None
    return (entry.answered_at - entry.real_at) / timedelta(milliseconds=1)


@stated(**VIEW_FACTS)
def get_request_view(call: Call, project_id: str, entry_id: str) -> Response:
    """Show a call or a webhook with headers and bodies."""
    project = enter(call, project_id)
    entry = _find_entry(project, entry_id)
    if entry is None:
        raise Unknown(f"there is no call and no webhook {entry_id!r}; it may have been dropped")
    if isinstance(entry, Delivery):
        return show(
            call,
            "webhook",
            project,
            "requests",
            webhook=_webhook_row(project, entry, _next_attempts(project.epoch).get(entry.id)),
            outcomes=OUTCOME_LABELS,
            default_request=_default_request(project, entry),
            sent_headers=WEBHOOK_HEADERS,
            periods=DELAY_LABELS,
            format_body=format_body,
        )
    ids = [known.id for known in project.epoch.journal.of(LoggedRequest)]
    at = ids.index(entry.id)
    return show(
        call,
        "request",
        project,
        "requests",
        entry=journal_record(project, entry),
        reason=refusal_message(entry) or short_reason(entry),
        took_ms=_duration_ms(entry),
        curl=curl(project, entry),
        older=ids[at - 1] if at else None,
        newer=next(iter(ids[at + 1 : at + 2]), None),
        format_body=format_body,
    )


@stated(**FORM_FACTS)
def post_test_webhook(call: Call, project_id: str) -> Response:
    """Pay a test order, and show the shop's answers to its webhooks."""
    project = enter(call, project_id)
    order = play(project, "paid", partial(create_manual_order, project))
    project.settle(ANSWER_SECONDS, orders=[order.id])
    back = form_page(call) or url(project, "requests/")
    return redirect(with_notice(project, back, answer_notice(project, order.id)))


@stated(**FORM_FACTS)
def post_unsent_view(call: Call, project_id: str) -> Response:
    """Deliver all webhooks that were not sent, as no address was set; the project keeps its first address."""
    project = enter(call, project_id)
    address = call.request.form.get("webhook_url", "").strip()
    data = COMMANDS["deliver_unsent"].read({"webhook_url": address})
    delivered = deliver_unsent(project, data["webhook_url"])
    text = f"Sent {len(delivered)} webhook{'' if len(delivered) == 1 else 's'}."
    if project.settings.webhook_url is None:
        project.change_settings(data)
        text += " New webhooks will go to the same address."
    notice = Notice(text)
    return redirect(with_notice(project, url(project, "requests/", show=WEBHOOKS), notice))


@stated(**FORM_FACTS)
def post_redelivery_view(call: Call, project_id: str, delivery_id: str) -> Response:
    """Redeliver a webhook now or later, optionally with another URL or body."""
    project = enter(call, project_id)
    delivery = find_delivery(project, delivery_id)
    back = form_page(call) or url(project, f"requests/{delivery_id}/")
    standard_address, body = _default_request(project, delivery)
    unchanged = {"url": standard_address, "body": body, "after": ""}
    given = {name: call.request.form.get(name, "") for name in unchanged}
    data = COMMANDS["redeliver"].read(
        {name: each for name, each in given.items() if each.strip() not in ("", unchanged[name])}
    )
    redeliver(project, delivery_id, **data)
    if "after" not in data:
        return redirect(back)
    text = f"The webhook will be resent in {DELAY_LABELS.get(data['after'], data['after'])} of sandbox time."
    return redirect(with_notice(project, back, Notice(text, (delivery.order_id,))))


def _default_request(project: Project, delivery: Delivery) -> tuple[str, str]:
    """Return the masked URL and the body of a webhook, for the resend form."""
    return project.masking.mask_text(standard_url(project.settings, delivery)), standard_body(
        project, delivery
    )
