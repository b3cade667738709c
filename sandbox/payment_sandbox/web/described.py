"""What each route takes and answers, for the API's description; the routes themselves say the rest."""

from typing import Any, Final, NamedTuple

from marshmallow import Schema

from payment_sandbox.projects.settings import SettingsForm
from payment_sandbox.scenarios.forms import FaultsForm, ScenarioForm
from payment_sandbox.web.control import forms as control
from payment_sandbox.web.merchant import forms, shapes


class Described(NamedTuple):
    """One route: the form it reads, the shape it answers, an example of the request."""

    request: type[Schema] | None = None
    response: type[Schema] | None = None
    status: int = 200
    needs_body: bool = True
    if_match: bool = False
    query: tuple[str, ...] = ()
    errors: tuple[int, ...] = (401,)
    media_type: str = "application/json"
    is_list: bool = False
    example: Any = None


LINES: Final = [{"merchant_order_line_id": "line-1", "quantity": 1}]
BODY_ERRORS: Final = (400, 401, 413, 415)
TAKING: Final = (400, 401, 404, 409, 412, 413, 415)
ORDER_EXAMPLE: Final = {
    "currency": "EUR",
    "amount": 1295,
    "merchant_order_id": "shop-1001",
    "description": "Two pairs of socks",
    "return_url": "https://shop.example/thanks",
    "webhook_url": "https://shop.example/webhook",
    "customer": {"email_address": "jan@example.com", "country": "NL", "locale": "nl"},
    "transactions": [{"payment_method": "credit-card", "capture_mode": "manual", "expiration_period": "P7D"}],
}
QR_EXAMPLE: Final = {"amount": 1295, "description": "Coffee", "size": 300}
ACT_EXAMPLE: Final = {"actor": "customer", "action": "pay", "card": "frictionless"}
SCENARIO_EXAMPLE: Final = {
    "name": "second-try-works",
    "rules": [
        {
            "when": {"payment_method": "credit-card", "attempt": 1},
            "then": {"customer": "fails", "after": "PT20S"},
        },
        {"when": {"payment_method": "credit-card"}, "then": {"customer": "pays", "after": "PT1M"}},
    ],
}
FAULTS_EXAMPLE: Final = {
    "faults": [{"when": {"method": "POST", "path": "/v1/orders/", "nth": 2}, "then": {"status": 503}}],
    "webhooks": [{"when": {"attempt": 1}, "then": {"answer": 503}}],
}

PAGE: Final = Described(errors=(404,), media_type="text/html")
POSTED: Final = Described(status=303, errors=(403, 404), media_type="text/html")

DESCRIBED: Final = {
    "api.post_order": Described(
        forms.OrderForm, shapes.OrderShape, 201, errors=(*BODY_ERRORS, 409), example=ORDER_EXAMPLE
    ),
    "api.get_order": Described(None, shapes.OrderShape, query=("fields[]",), errors=(400, 401, 404)),
    "api.put_order": Described(
        forms.UpdateForm,
        shapes.OrderShape,
        if_match=True,
        errors=TAKING,
        example={"description": "Two pairs of socks, blue"},
    ),
    "api.delete_order": Described(None, shapes.OrderShape, if_match=True, errors=(401, 404, 409, 412)),
    "api.post_refund": Described(
        forms.RefundForm,
        shapes.OrderShape,
        201,
        needs_body=False,
        if_match=True,
        errors=TAKING,
        example={"amount": 500, "description": "One pair came back"},
    ),
    "api.post_capture": Described(
        forms.NothingForm, shapes.TransactionShape, needs_body=False, if_match=True, errors=TAKING, example={}
    ),
    "api.post_capture_amount": Described(
        forms.ByAmountForm,
        shapes.TransactionShape,
        if_match=True,
        errors=TAKING,
        example={"amount": 500, "description": "First parcel"},
    ),
    "api.post_capture_lines": Described(
        forms.ByLinesForm,
        shapes.TransactionShape,
        if_match=True,
        errors=TAKING,
        example={"description": "First parcel", "order_lines": LINES},
    ),
    "api.post_void_amount": Described(
        forms.ByAmountForm,
        shapes.TransactionShape,
        if_match=True,
        errors=TAKING,
        example={"amount": 500, "description": "Out of stock"},
    ),
    "api.post_void_lines": Described(
        forms.ByLinesForm,
        shapes.TransactionShape,
        if_match=True,
        errors=TAKING,
        example={"description": "Out of stock", "order_lines": LINES},
    ),
    "api.get_issuers": Described(None, shapes.IssuerShape, is_list=True, errors=(401, 404)),
    "api.get_currencies": Described(None, shapes.CurrenciesShape),
    "api.post_qr": Described(forms.QrForm, shapes.QrShape, 201, errors=BODY_ERRORS, example=QR_EXAMPLE),
    "health.get_health": Described(errors=()),
    "projects.post_project": Described(
        SettingsForm, status=201, needs_body=False, errors=BODY_ERRORS, example={"mode": "live", "seed": 7}
    ),
    "projects.get_projects": Described(),
    "control.get_project": Described(),
    "control.patch_project": Described(SettingsForm, errors=BODY_ERRORS, example={"mode": "live"}),
    "control.delete_project": Described(),
    "control.post_reset": Described(),
    "control.get_state": Described(),
    "control.put_state": Described(errors=BODY_ERRORS),
    "control.get_clock": Described(),
    "control.patch_clock": Described(
        control.ClockForm, errors=(*BODY_ERRORS, 409), example={"mode": "running", "rate": 3600}
    ),
    "control.post_advance": Described(
        control.AdvanceForm, errors=(*BODY_ERRORS, 409), example={"by": "PT30M"}
    ),
    "control.get_agenda": Described(),
    "control.get_scenario": Described(),
    "control.put_scenario": Described(ScenarioForm, errors=BODY_ERRORS, example=SCENARIO_EXAMPLE),
    "control.delete_scenario": Described(),
    "control.get_scenarios": Described(),
    "control.get_scenario_schema": Described(),
    "control.get_faults": Described(),
    "control.put_faults": Described(FaultsForm, errors=BODY_ERRORS, example=FAULTS_EXAMPLE),
    "control.delete_faults": Described(),
    "control.post_act": Described(
        control.ActForm, shapes.OrderShape, errors=(*BODY_ERRORS, 404, 409), example=ACT_EXAMPLE
    ),
    "control.post_scan": Described(
        control.ScanForm,
        shapes.OrderShape,
        201,
        needs_body=False,
        errors=(*BODY_ERRORS, 404, 409),
        example={"amount": 1500},
    ),
    "control.get_webhooks": Described(query=("order_id", "state"), errors=(400, 401)),
    "control.post_redelivery": Described(errors=(401, 404)),
    "watching.get_wait": Described(
        query=("order_id", "status", "webhook", "idle", "timeout"), errors=(400, 401, 404, 408)
    ),
    "watching.get_events": Described(media_type="text/event-stream"),
    "control.get_journal": Described(
        query=("method", "path", "status", "order_id", "count"), errors=(400, 401)
    ),
    "control.get_fidelity": Described(),
    "docs.get_root": PAGE,
    "docs.get_first_page": Described(errors=(), media_type="text/html"),
    "docs.get_page": PAGE,
    "docs.get_style": Described(errors=(), media_type="text/css"),
    "pages.get_order_page": PAGE,
    "pages.post_order_page": POSTED,
    "pages.get_payment": PAGE,
    "pages.post_payment": POSTED,
    "pages.get_secure": PAGE,
    "pages.post_secure": POSTED,
    "pages.get_scan": PAGE,
    "pages.get_left": PAGE,
    "pages.get_result": PAGE,
    "pages.get_state": Described(errors=(404,)),
    "pages.get_code": Described(errors=(404,), media_type="image/png"),
    "pages.get_qr_page": PAGE,
    "pages.post_qr_page": POSTED,
    "pages.get_qr_image": Described(errors=(404,), media_type="image/png"),
    "pages.get_asset": Described(errors=(404,), media_type="text/css"),
}
