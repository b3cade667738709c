"""The payers' routes: the order's page, the page of an attempt and its steps, and where it ends."""

from flask import Response, request

from payment_sandbox.operations.act import act as act_on_order
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.refusals import ActionNotPossible, Invalid, Unknown
from payment_sandbox.web.addresses import scan_url
from payment_sandbox.web.after import hold_webhooks
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.answers.shapes import StateVersionShape
from payment_sandbox.web.pages import payment
from payment_sandbox.web.pages.blueprint import PAGE, POSTED, pages
from payment_sandbox.web.pages.choosing import choices, is_repeated
from payment_sandbox.web.pages.endings import BUTTONS, PAY, corner_buttons, secured, to_be_secured
from payment_sandbox.web.pages.qr_image import qr_png
from payment_sandbox.web.pages.results import ending
from payment_sandbox.web.pages.visit import Visit, arrive, go, go_on, show
from payment_sandbox.web.routes import route

SCAN_PIXELS = 240
ATTEMPT = "/pay/<project_id>/<order_id>/<transaction_id>"


@route(pages, "GET", "/pay/<project_id>/<order_id>/", **PAGE)
def get_order_page(project_id: str, order_id: str) -> Response:
    """Show the ways to pay an order, or how it ended (GEN-03)."""
    visit = arrive(project_id, order_id)
    if not visit.can_choose_again:
        return _led_on(visit)
    if visit.order.last_transaction is None and request.method == "GET":
        hold_webhooks()
        act_on_order(visit.project, order_id, Action(CUSTOMER, "visit"))
    leave = visit.url("get_result")
    return show(visit.now(), "choose", choices=choices(visit), corner=(), leave=leave)


def _led_on(visit: Visit) -> Response:
    """To the one attempt of an order where nothing can be chosen, or to how it ended."""
    newest = visit._replace(attempt=visit.order.last_transaction)
    if not visit.order.is_hosted and newest.attempt is not None and not newest.is_over:
        return go_on(newest)
    return show(visit, "result", ending=ending(visit), corner=())


@route(pages, "POST", "/pay/<project_id>/<order_id>/", **POSTED)
def post_order_page(project_id: str, order_id: str) -> Response:
    """Choose a way to pay (SET-18)."""
    visit = arrive(project_id, order_id)
    chosen = request.form.get("payment_method", "")
    if not visit.is_own_post():
        return go(visit.url("get_order_page", notice="stale"))
    if is_repeated(visit, chosen):
        return go_on(visit._replace(attempt=visit.order.last_transaction))
    hold_webhooks()
    return _chosen(visit, chosen)


def _chosen(visit: Visit, chosen: str) -> Response:
    issuer_id = request.form.get("issuer_id")
    action = Action(CUSTOMER, "choose", payment_method=chosen, issuer_id=issuer_id)
    try:
        order = act_on_order(visit.project, visit.order.id, action)
    except (ActionNotPossible, Invalid):
        return go(visit.url("get_order_page", notice="stale"))
    return go_on(visit.now()._replace(attempt=order.last_transaction))


@route(pages, "GET", f"{ATTEMPT}/", **PAGE)
def get_payment(project_id: str, order_id: str, transaction_id: str) -> Response:
    """Show the page of an attempt; one that has ended leads on (GEN-06)."""
    visit = arrive(project_id, order_id, transaction_id)
    if request.method == "GET":
        visit = payment.enter(visit)
    return go_on(visit) if visit.is_over else payment.shown(visit)


@route(pages, "POST", f"{ATTEMPT}/", **POSTED)
def post_payment(project_id: str, order_id: str, transaction_id: str) -> Response:
    """Let the customer, or the tester for somebody else, end the attempt."""
    visit = arrive(project_id, order_id, transaction_id)
    name = request.form.get("action", "")
    if not visit.is_own_post() or name not in BUTTONS or BUTTONS[name].name not in visit.actions:
        return _stale(visit)
    done = payment.paid(visit) if name == PAY else BUTTONS[name]
    return done if isinstance(done, Response) else _acted(visit, done)


def _acted(visit: Visit, action: Action) -> Response:
    hold_webhooks()
    return go_on(payment.act(visit, action))


def _stale(visit: Visit) -> Response:
    return go_on(visit) if visit.is_over else go(visit.url("get_payment", notice="stale"))


@route(pages, "GET", f"{ATTEMPT}/secure/", **PAGE)
def get_secure(project_id: str, order_id: str, transaction_id: str) -> Response:
    """Show the 3-D Secure step (GPAY-03, CARD-07)."""
    visit = arrive(project_id, order_id, transaction_id)
    about = to_be_secured(visit, request.args)
    if visit.is_over or about is None:
        return _stale(visit)
    card, authorization = about
    corner, leave = corner_buttons(visit), visit.url("get_left")
    return show(visit, "secure", card=card, authorization=authorization, corner=corner, leave=leave)


@route(pages, "POST", f"{ATTEMPT}/secure/", **POSTED)
def post_secure(project_id: str, order_id: str, transaction_id: str) -> Response:
    """Let the bank answer."""
    visit = arrive(project_id, order_id, transaction_id)
    about = to_be_secured(visit, request.form)
    action = secured(request.form.get("action"), *about) if about is not None else None
    if action is None or not visit.is_own_post() or action.name not in visit.actions:
        return _stale(visit)
    return _acted(visit, action)


@route(pages, "GET", f"{ATTEMPT}/scan/", **PAGE)
def get_scan(project_id: str, order_id: str, transaction_id: str) -> Response:
    """Show what a wallet app shows after the scan (WQR-01)."""
    visit = arrive(project_id, order_id, transaction_id)
    if payment.kind_of(visit) != "scan":
        raise Unknown("there is nothing at this address")
    visit = payment.enter(visit) if request.method == "GET" else visit
    if visit.is_over:
        return go_on(visit)
    return show(visit, "confirm", corner=corner_buttons(visit), leave=visit.url("get_left"))


@route(pages, "GET", f"{ATTEMPT}/code.png", media_type="image/png", errors=(404,))
def get_code(project_id: str, order_id: str, transaction_id: str) -> Response:
    """The code that a wallet app scans."""
    visit = arrive(project_id, order_id, transaction_id)
    if payment.kind_of(visit) != "scan":
        raise Unknown("there is nothing at this address")
    address = scan_url(visit.project, visit.order, payment.attempt_of(visit))
    return Response(qr_png(address, SCAN_PIXELS), mimetype="image/png")


@route(pages, "GET", f"{ATTEMPT}/state/", answers=StateVersionShape, errors=(404,))
def get_state(project_id: str, order_id: str, transaction_id: str) -> Response:
    """Say how it stands, for a page that waits."""
    visit = arrive(project_id, order_id, transaction_id)
    return json_answer({"state": visit.order.version})


@route(pages, "GET", f"{ATTEMPT}/left/", **PAGE)
def get_left(project_id: str, order_id: str, transaction_id: str) -> Response:
    """Show a payer who walks away that nothing has happened."""
    visit = arrive(project_id, order_id, transaction_id)
    return go_on(visit) if visit.is_over else show(visit, "left", corner=())


@route(pages, "GET", "/pay/<project_id>/<order_id>/result/", **PAGE)
def get_result(project_id: str, order_id: str) -> Response:
    """Show how a payment ended to a payer who has no shop to go back to (FLOW-16)."""
    visit = arrive(project_id, order_id)
    return show(visit, "result", ending=ending(visit), corner=())
