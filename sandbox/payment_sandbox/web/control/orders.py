"""The calls that show orders, and what happened to them; they leave no trace."""

from itertools import islice

from flask import Response, request

from payment_sandbox.kernel.moments import timestamp
from payment_sandbox.operations.coverage.matrix import coverage
from payment_sandbox.operations.find_orders import Wanted, find_orders
from payment_sandbox.operations.happenings import as_mapping
from payment_sandbox.operations.history import history
from payment_sandbox.operations.review import review
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.vault import Credential
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.records import as_plain
from payment_sandbox.web.addresses import qr_page_url
from payment_sandbox.web.answers.history import newest_page
from payment_sandbox.web.answers.later import OVERVIEW, Later
from payment_sandbox.web.answers.overview import order_overview, order_row, row_record
from payment_sandbox.web.answers.responses import json_answer, list_answer
from payment_sandbox.web.auth import project
from payment_sandbox.web.control.blueprint import control
from payment_sandbox.web.control.forms import DeedsQuery, OrdersQuery, TimelineQuery
from payment_sandbox.web.routes import route


@route(
    control,
    "GET",
    "/orders/",
    answers=Later("OrdersShape", OVERVIEW),
    query=OrdersQuery,
    errors=(400, 401),
    slow=True,
)
def get_orders() -> Response:
    """List orders, newest first."""
    query = request.args
    wanted = Wanted(query.get("status"), query.get("method"), query.get("text"), query.get("before"))
    limit = query.get("limit")
    found = islice(find_orders(project().epoch, wanted), int(limit) if limit is not None else None)
    owner = project()
    return list_answer(order_row(owner, order) for order in found)


@route(
    control,
    "GET",
    "/orders/<order_id>/",
    answers=Later("OrderOverviewShape", OVERVIEW),
    errors=(401, 404),
    slow=True,
)
def get_order_overview(order_id: str) -> Response:
    """Get everything about one order: what is possible now, what is due, its webhooks and refunds."""
    return json_answer(order_overview(project(), project().find_order(order_id)))


@route(
    control,
    "GET",
    "/timeline/",
    answers=Later("TimelineShape", OVERVIEW),
    query=TimelineQuery,
    errors=(400, 401, 404),
    slow=True,
)
def get_timeline() -> Response:
    """List all that happened, causes before effects."""
    found = history(project().epoch, request.args.get("order_id"))
    limit = request.args.get("limit")
    shown = found[-int(limit) :] if limit is not None else found
    return list_answer(map(as_mapping, shown), project().epoch.journal.dropped)


@route(
    control,
    "GET",
    "/deeds/",
    answers=Later("DeedsShape", OVERVIEW),
    query=DeedsQuery,
    errors=(400, 401),
    slow=True,
)
def get_deeds() -> Response:
    """List what customers, banks, screenings and processors did, newest last."""
    order_id = request.args.get("order_id")
    deeds = list(project().epoch.journal.deeds(frozenset((order_id,)) if order_id is not None else None))
    page = newest_page(reversed(deeds), request.args, lambda known: any(known == deed.id for deed in deeds))
    return list_answer(map(as_plain, page))


@route(control, "GET", "/review/", answers=Later("ReviewShape", OVERVIEW), slow=True)
def get_review() -> Response:
    """List mistakes of the integration, found in its requests and webhooks; a correct one has none."""
    return list_answer([finding._asdict() for finding in review(project().epoch)])


@route(control, "GET", "/coverage/", answers=Later("CoverageShape", OVERVIEW), slow=True)
def get_coverage() -> Response:
    """Tell what the project has met of all that can happen: ends of payments, webhooks, refusals, rules."""
    found = coverage(project())
    rows = (row_record(row) for row in (*found.methods, *found.others))
    return list_answer(rows, percent=round(found.percent, 1), is_chosen=found.is_chosen)


@route(control, "GET", "/cards/", answers=Later("StoredCardsShape", OVERVIEW), slow=True)
def get_cards() -> Response:
    """List the stored cards, oldest first."""
    return list_answer(map(_card, project().epoch.store.credentials()))


@route(control, "GET", "/bankqr/", answers=Later("QrRequestsShape", OVERVIEW), slow=True)
def get_qr_requests() -> Response:
    """List the QR requests, oldest first."""
    owner = project()
    return list_answer(_qr_request(owner, asked) for asked in owner.epoch.store.qr_requests())


def _card(stored: Credential) -> dict[str, object]:
    return {
        "vault_token": stored.vault_token,
        "use": stored.use,
        "first_transaction_id": stored.first_transaction_id,
        "amount": stored.amount_cents,
        "stored_at": timestamp(stored.stored_at),
        "brand": stored.brand,
        "card": stored.card,
    }


def _qr_request(owner: Project, asked: QrRequest) -> dict[str, object]:
    return {
        "id": asked.id,
        "created": timestamp(asked.created),
        "expires_at": timestamp(asked.expires_at),
        "amount": asked.amount_cents,
        "amount_changeable": asked.amount_changeable,
        "one_off": asked.one_off,
        "scans": asked.scans,
        "description": asked.description,
        "merchant_order_id": asked.merchant_order_id,
        "page": qr_page_url(owner, asked),
    }
