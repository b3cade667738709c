"""What happened, in detail: webhooks, requests, the journal, the review, stored cards and QR codes."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from flask import Response
from marshmallow import validate

from payment_sandbox.forms import Choice, Form, Text, WebUrl, read
from payment_sandbox.kernel.times import Period
from payment_sandbox.operations.coverage import coverage
from payment_sandbox.operations.deliver_webhook import (
    find_delivery,
    redeliver,
    resend_later,
    standard_body,
    standard_url,
)
from payment_sandbox.operations.ends import play_end, playable_ends
from payment_sandbox.operations.in_words import why_refused
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.orders.webhooks import LOST, Delivery, DeliveryState
from payment_sandbox.projects.journal import JournalEntry
from payment_sandbox.projects.outbox import Changed
from payment_sandbox.projects.project import Project
from payment_sandbox.web.addresses import qr_page_path
from payment_sandbox.web.answers.control import delivery_record, delivery_summary, journal_summary
from payment_sandbox.web.answers.history import newest_page, request_record
from payment_sandbox.web.browsers import go
from payment_sandbox.web.call import Call
from payment_sandbox.web.dashboard.again import made_by_hand
from payment_sandbox.web.dashboard.copies import pretty
from payment_sandbox.web.dashboard.frame import (
    LIVE,
    POSTED,
    VIEW,
    dashboard,
    enter,
    known_only,
    show,
    url,
    way_back,
)
from payment_sandbox.web.dashboard.notices import Notice, with_notice
from payment_sandbox.web.dashboard.verdict import kinds, known_review, moment_of_day
from payment_sandbox.web.routes import route

ROWS_SHOWN: Final = 50
BODY_LENGTH_MAX: Final = 16_384
LATER: Final = {"PT1M": "a minute", "PT10M": "ten minutes", "PT1H": "an hour", "P1D": "a day"}
CALL_KINDS: Final = {"2xx": "done", "3xx": "not changed", "4xx": "refused", "5xx": "failed", "cut": "cut"}
PROJECT: Final = "/dashboard/<project_id>"


@route(dashboard, "GET", f"{PROJECT}/webhooks/", **VIEW)
def get_webhooks_view(call: Call, project_id: str) -> Response:
    """Show the webhooks, newest first, with each attempt."""
    project = enter(call, project_id)
    state, store = call.request.args.get("state") or None, project.epoch.store
    deliveries = store.deliveries()
    wanted = (delivery for delivery in reversed(deliveries) if state in (None, delivery.outcome))
    args, remark = known_only(call.request.args, before=store.delivery)
    query = {"limit": str(ROWS_SHOWN + 1), **_before(args)}
    page = newest_page(wanted, query, lambda known: store.delivery(known) is not None)[::-1]
    return show(
        call,
        "webhooks",
        project,
        "webhooks",
        rows=[delivery_summary(delivery, project.masking) for delivery in page[:ROWS_SHOWN]],
        has_more=len(page) > ROWS_SHOWN,
        states=[*(state.value for state in DeliveryState), LOST],
        state_wanted=state,
        remark=remark,
        untold=len(project.epoch.journal.statuses) if not deliveries else 0,
    )


@route(dashboard, "GET", f"{PROJECT}/webhooks/<delivery_id>/", **VIEW)
def get_webhook_view(call: Call, project_id: str, delivery_id: str) -> Response:
    """Show one webhook with the headers and bodies of its attempts."""
    project = enter(call, project_id)
    delivery = find_delivery(project, delivery_id)
    beside = call.request.args.get("beside")
    shown = [delivery, *([find_delivery(project, beside)] if beside else [])]
    return show(
        call,
        "webhook",
        project,
        "webhooks",
        webhooks=[delivery_record(each, project.masking) for each in shown],
        others=[each for each in project.epoch.store.deliveries_of(delivery.order_id) if each not in shown],
        sent=_shown_as_sent(project, delivery),
        periods=LATER,
    )


@route(dashboard, "POST", f"{PROJECT}/webhooks/<delivery_id>/redeliver/", **POSTED)
def post_redelivery_view(call: Call, project_id: str, delivery_id: str) -> Response:
    """Deliver a webhook again, now or later, perhaps elsewhere or with another body."""
    project = enter(call, project_id)
    delivery = find_delivery(project, delivery_id)
    back = way_back(call) or url(project, f"webhooks/{delivery_id}/")
    given = read(RESEND, {name: value for name in RESEND.fields if (value := call.request.form.get(name))})
    url_shown, body = _shown_as_sent(project, delivery)
    changed = Changed(_unless(given.get("url"), url_shown), _unless(given.get("body"), body))
    if "after" not in given:
        redeliver(project, delivery_id, changed)
        return go(back)
    resend_later(project, delivery_id, changed, Period.parse(given["after"]))
    text = f"It is sent once more in {LATER[given['after']]} of sandbox time."
    return go(with_notice(project, back, Notice(text, (delivery.order_id,))))


def _shown_as_sent(project: Project, delivery: Delivery) -> tuple[str, str]:
    """Where a webhook goes and what it says, as the form shows it."""
    return project.masking.text(standard_url(project.settings, delivery)), standard_body(project, delivery)


def _unless(given: str | None, usual: str) -> str | None:
    """What was typed, unless it is what is sent anyway."""
    return given if given is not None and given.strip() != usual else None


class ResendForm(Form):
    """How a webhook is sent once more."""

    url = WebUrl()
    body = Text(validate=validate.Length(max=BODY_LENGTH_MAX, error="must have at most {max} characters"))
    after = Choice(tuple(LATER))


RESEND: Final = ResendForm()


class JournalFilter(NamedTuple):
    """Which requests of the journal to show; empty means any."""

    method: str
    status: str  # 409, or 4xx
    text: str  # in the path, the order's id or the rule

    def has(self, entry: JournalEntry) -> bool:
        """Whether a request is one of them."""
        status = self.status.removesuffix("xx")
        return (
            self.method.upper() in ("", entry.method)
            and str(entry.status or "cut").startswith(status)
            and any(self.text.casefold() in (text or "").casefold() for text in self._texts(entry))
        )

    @staticmethod
    def _texts(entry: JournalEntry) -> tuple[str | None, ...]:
        return f"{entry.path}?{entry.query}", entry.order_id, entry.rule


@route(dashboard, "GET", f"{PROJECT}/journal/", **VIEW)
def get_journal_view(call: Call, project_id: str) -> Response:
    """Show the requests to the merchant API, newest first."""
    project = enter(call, project_id)
    journal = project.epoch.journal
    args, remark = known_only(call.request.args, before=journal.find)
    query = {"limit": str(ROWS_SHOWN + 1), **_before(args)}
    wanted = JournalFilter(*(call.request.args.get(name, "").strip() for name in JournalFilter._fields))
    newest = journal.entries(wanted.has, newest_first=True, with_bodies=False)
    page = newest_page(newest, query, lambda known: journal.find(known) is not None)[::-1]
    return show(
        call,
        "journal",
        project,
        "journal",
        rows=[_with_reason(project, entry) for entry in page[:ROWS_SHOWN]],
        has_more=len(page) > ROWS_SHOWN,
        dropped=journal.dropped,
        wanted=wanted,
        remark=remark,
        kinds=CALL_KINDS,
    )


def _with_reason(project: Project, entry: JournalEntry) -> dict[str, object]:
    """A request of the journal; of a refused one, why."""
    refused = project.epoch.journal.find(entry.id) if entry.rule is not None else None
    return {**journal_summary(entry), "why": why_refused(refused) if refused is not None else ""}


@route(dashboard, "GET", f"{PROJECT}/requests/<entry_id>/", **VIEW)
def get_request_view(call: Call, project_id: str, entry_id: str) -> Response:
    """Show one request and its response, with headers and bodies."""
    project = enter(call, project_id)
    entry = project.epoch.journal.find(entry_id)
    if entry is None:
        raise Unknown(f"the journal has no request {entry_id!r} (any more)")
    return show(call, "request", project, "journal", entry=request_record(project, entry), pretty=pretty)


@route(dashboard, "GET", f"{PROJECT}/review/", **VIEW)
def get_review_view(call: Call, project_id: str) -> Response:
    """Show mistakes of the integration."""
    project = enter(call, project_id)
    known = known_review(project, may_wait=LIVE in call.request.headers or "now" in call.request.args)
    return show(call, "review", project, "review", kinds=kinds(known.findings) if known is not None else None)


@route(dashboard, "GET", f"{PROJECT}/coverage/", **VIEW)
def get_coverage_view(call: Call, project_id: str) -> Response:
    """Show what the shop has met of all that can happen."""
    project = enter(call, project_id)
    known = known_review(project, may_wait=LIVE in call.request.headers)
    return show(
        call,
        "coverage",
        project,
        "coverage",
        covered=coverage(project, known.findings if known is not None else ()),
        is_judged=known is not None,
        playable=lambda method: playable_ends(project, method),
        played_at=lambda order_id: moment_of_day(project.find_order(order_id).created, project.now()),
    )


@route(dashboard, "POST", f"{PROJECT}/coverage/", **POSTED)
def post_coverage(call: Call, project_id: str) -> Response:
    """Play a case that was never met."""
    project = enter(call, project_id)
    method, _, end = call.request.form.get("case", "").partition(" ")
    order = play_end(project, method, end, lambda body: made_by_hand(project, body, {}))
    notice = Notice(f"Played: {method}, {end}.")
    return go(with_notice(project, url(project, f"orders/{order.id}/"), notice))


@route(dashboard, "GET", f"{PROJECT}/vault/", **VIEW)
def get_vault_view(call: Call, project_id: str) -> Response:
    """Show the stored cards and the QR codes."""
    project = enter(call, project_id)
    store = project.epoch.store
    codes = [(asked, qr_page_path(project, asked)) for asked in reversed(store.qr_requests())]
    cards = store.credentials()[::-1]
    return show(call, "vault", project, "vault", cards=cards[:ROWS_SHOWN], codes=codes[:ROWS_SHOWN])


def _before(args: Mapping[str, str]) -> dict[str, str]:
    return {"before": args["before"]} if "before" in args else {}
