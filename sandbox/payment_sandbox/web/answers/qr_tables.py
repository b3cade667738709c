"""The format of bank QR requests in the API."""

from collections.abc import Mapping
from typing import Any, Final

from marshmallow import fields

from payment_sandbox.forms import Cents, Choice, DateTime, Flag, Text, WebUrl, Whole, repairs
from payment_sandbox.orders.amounts import CURRENCY, decimal_text
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import page_urls
from payment_sandbox.web.answers.tables import COMPUTED, CREATE, RecordField, Table, number, text

BENEFICIARY: Final = "Sandbox Merchant"


def _euros(cents: int | None) -> str | None:
    return decimal_text(cents) if cents is not None else None


QR: Final = Table(
    "Qr",
    "A bank QR request.",
    (
        RecordField("id", always=True),
        RecordField("merchant_id", source=COMPUTED, always=True),
        RecordField("project_id", source=COMPUTED, always=True),
        RecordField("merchant_sub_id", number(), source=COMPUTED, always=True),
        RecordField("beneficiary", source=COMPUTED, always=True),
        RecordField(
            "amount",
            text("Euros with two decimals."),
            Cents(about="Cents; required when the payer may not change it."),
            source=COMPUTED,
            rule="QR-02",
        ),
        RecordField(
            "amount_changeable",
            fields.Boolean(),
            Flag(about="Whether the payer may change the amount; false by default."),
            always=True,
            rule="QR-03",
        ),
        RecordField(
            "amount_min",
            text(),
            Cents(about="The minimum amount for the payer, in cents."),
            source=COMPUTED,
            rule="QR-09",
        ),
        RecordField(
            "amount_max",
            text(),
            Cents(about="The maximum amount for the payer, in cents."),
            source=COMPUTED,
            rule="QR-07",
        ),
        RecordField("currency", reads=Choice((CURRENCY,), about="EUR."), always=True, rule="QR-10"),
        RecordField("description", reads=Text(about="Shown to the payer."), rule="QR-11"),
        RecordField(
            "one_off",
            fields.Boolean(),
            Flag(about="Whether the code is for one payment; true by default."),
            always=True,
            rule="QR-12",
        ),
        RecordField(
            "expiration",
            text("YYYY-MM-DD HH:MM, UTC."),
            DateTime(about="The time until which the code can be scanned; after one year by default."),
            source=COMPUTED,
            always=True,
            rule="QR-16",
        ),
        RecordField(
            "merchant_order_id", reads=Text(about="The merchant's own id for the payment."), rule="QR-18"
        ),
        RecordField(
            "size",
            number(),
            Whole(low=100, high=2000, about="Pixels, 100 to 2000; 200 by default."),
            source="size_pixels",
            always=True,
            rule="QR-20",
        ),
        RecordField(
            "return_url",
            reads=WebUrl(about="The URL for the payer's return after the payment."),
            rule="QR-21",
        ),
        RecordField(
            "webhook_url", reads=WebUrl(about="The URL for the webhooks of the orders."), rule="QR-22"
        ),
        RecordField(
            "qr_url",
            text("The URL of the QR code image.", format="uri"),
            source=COMPUTED,
            always=True,
        ),
    ),
)


@repairs
def drop_zero_amount(self: Any, data: Any, **options: Any) -> Any:
    """Treat a changeable amount of 0 as no amount (A23)."""
    if not isinstance(data, Mapping) or data.get("amount_changeable") is not True:
        return data
    amount = data.get("amount")
    is_zero = isinstance(amount, int) and not isinstance(amount, bool) and amount == 0
    return {key: value for key, value in data.items() if key != "amount"} if is_zero else data


QrForm: Final = QR.form("QrForm", "A new bank QR request.", CREATE, drop_zero_amount=drop_zero_amount)


def qr_record(project: Project, request: QrRequest) -> dict[str, Any]:
    """Serialize a QR request: amounts in decimal euros, expiration to the minute in UTC."""
    computed: dict[str, Any] = {
        "merchant_id": project.merchant_id,
        "project_id": project.project_id,
        "merchant_sub_id": 1,
        "beneficiary": project.settings.name or BENEFICIARY,
        "amount": _euros(request.amount_cents),
        "amount_min": _euros(request.amount_min_cents),
        "amount_max": _euros(request.amount_max_cents),
        "expiration": f"{request.expires_at:%Y-%m-%d %H:%M}",
        "qr_url": page_urls.qr_image_url(project, request),
    }
    return QR.record(request, computed)
