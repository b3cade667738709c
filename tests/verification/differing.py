"""Servers that deviate on purpose, with the rules that verify must report."""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.verification.exchanges import Alteration, Exchange

Record = dict[str, Any]
Change = Callable[[Record], object]
"""A change of an order, a transaction or a body in place."""


class Deviation(NamedTuple):
    """A deviation: its alterations, the rules that verify must report, and the settings that reproduce it."""

    rules: str
    settings: dict[str, Any] = {}
    before: Alteration | None = None
    after: Alteration | None = None


# Where a deviation shows


def in_orders(change: Change) -> Alteration:
    """Change each order that is returned."""
    return lambda x: x.is_order and change(x.data)


def in_reads(change: Change) -> Alteration:
    """Change an order when it is read, but not when it is created."""
    return lambda x: x.is_order and x.method == "GET" and change(x.data)


def in_attempts(change: Change) -> Alteration:
    """Change each transaction of an order."""
    return in_orders(lambda order: [change(attempt) for attempt in order["transactions"]])


def in_refunds(change: Change) -> Alteration:
    """Change each refund, also those without transactions."""
    return lambda x: isinstance(x.data, dict) and "refund_of_order_id" in x.data and change(x.data)


def in_updates(change: Change) -> Alteration:
    """Change the body of an update before it is handled."""
    return lambda x: x.method == "PUT" and change(x.body)


def in_customers_sent(change: Change) -> Alteration:
    """Change a customer before it is read."""
    return lambda x: isinstance(x.body.get("customer"), dict) and change(x.body["customer"])


def in_errors(kind: str, status: int, **error: Any) -> Alteration:
    """Answer errors of this type with another status, and with other values."""

    def change(x: Exchange) -> None:
        if x.error.get("type") == kind:
            x.reply(status)
            x.error.update(error)

    return change


def refuse(
    where: Callable[[Exchange], object], status: int = 400, kind: str = "ValidationError"
) -> Alteration:
    """Refuse what the sandbox accepts."""

    def change(x: Exchange) -> None:
        if not x.error and where(x):
            x.reply(status, type=kind, value="this cannot be")

    return change


def refuse_values(name: str, *values: Any) -> Alteration:
    """Refuse these values of a field anywhere in the body."""
    texts = [json.dumps({name: value})[1:-1] for value in values]
    return refuse(lambda x: x.method == "POST" and any(text in json.dumps(x.body) for text in texts))


# What deviates


def put(**values: Any) -> Change:
    """Set these values."""
    return lambda record: record.update(values)


def drop(*names: str) -> Change:
    """Drop these fields."""
    return lambda record: [record.pop(name, None) for name in names]


def replace(name: str, change: Callable[[Any], Any]) -> Change:
    """Replace a value, if there is one, by a function of it."""
    return lambda record: name in record and record.update({name: change(record[name])})


def replace_if(name: str, value: Any, by: Any) -> Change:
    """Replace one value by another."""
    return replace(name, lambda present: by if present == value else present)


def drop_header(name: str) -> Alteration:
    """Drop a header of each answer."""
    return lambda x: x.response is not None and x.response.headers.pop(name, None)


def _of_cards(change: Change) -> Change:
    return lambda attempt: attempt["payment_method"] == "credit-card" and change(attempt)


def _change_text(old: str, new: str) -> Alteration:
    def change(x: Exchange) -> None:
        x.data = json.loads(re.sub(old, new, json.dumps(x.data)))

    return change


def _of_order_and_attempts(is_changed: Change, status: str) -> Alteration:
    """Report another status of an order and of those of its transactions to which this applies."""

    def change(order: Record) -> None:
        for attempt in filter(is_changed, order["transactions"]):
            order["status"] = attempt["status"] = status

    return in_orders(change)


def _reword_currency_error(x: Exchange) -> None:
    if x.error.get("value", "").startswith("currency"):
        x.error["value"] = "Only euros, please"


def _return_200(x: Exchange) -> None:
    assert x.response is not None
    x.response.status_code = 200 if x.response.status_code == 201 else x.response.status_code


def _convert_line_details(order: Record) -> None:
    for line in order.get("order_line_details", ()):
        line.update(amount=int(line["amount"]), quantity=int(line["quantity"]))


def _report_new_transfers_as_new(x: Exchange) -> None:
    if x.method == "POST":
        _of_order_and_attempts(lambda attempt: attempt["payment_method"] == "bank-transfer", "new")(x)


def _report_qr_amount_in_cents(x: Exchange) -> None:
    if isinstance(x.data, dict) and "qr_url" in x.data:
        x.data["amount"] = round(float(x.data["amount"]) * 100)


def _redirect_without_slash(x: Exchange) -> None:
    if not x.path.partition("?")[0].endswith("/"):
        x.reply(301)
        x.data = None


def _accept(*, kind: str, method: str, status: str | None = None) -> Alteration:
    """Accept a call that the sandbox refuses with an error of this type; the order has this status afterwards."""

    def accept(x: Exchange) -> None:
        if x.method == method and x.error.get("type") == kind:
            x.reply(200)
            x.data = {"id": x.path.split("/")[3], **({"status": status} if status else {})}

    return accept


def _truncate(lengths: range, length: int) -> Alteration:
    """Truncate descriptions of these lengths."""
    return lambda x: (
        len(str(x.body.get("description"))) in lengths
        and x.body.update(description=x.body["description"][:length])
    )


REQUIRED_REFUND_FIELDS = (
    *("id", "amount", "currency", "status", "transactions", "flags"),
    *("refund_of_order_id", "created", "modified"),
)


def _reduce_refund(refund: Record) -> None:
    """Reduce a refund to its required fields."""
    drop(*(refund.keys() - set(REQUIRED_REFUND_FIELDS)))(refund)


def _return_empty_values(order: Record) -> None:
    """Return fields that were not sent as empty values."""
    empty: Record = {"order_lines": [], "payment_methods": [], "extra": {}, "return_url": "", "reason": None}
    order.update({**empty, **order, "refund_of_order_id": order.get("refund_of_order_id")})


def _require_unique_merchant_id() -> Alteration:
    """Return an alteration that refuses the merchant_order_id of another order."""
    seen: set[str] = set()

    def is_known(x: Exchange) -> bool:
        merchant_id = x.body.get("merchant_order_id") if isinstance(x.body, dict) else None
        if x.method != "POST" or x.path != "/v1/orders/" or not isinstance(merchant_id, str):
            return False
        is_known = merchant_id in seen
        seen.add(merchant_id)
        return is_known

    return refuse(is_known)


def _ignore_case_of_methods(x: Exchange) -> None:
    attempts = x.body.get("transactions")
    for attempt in attempts if isinstance(attempts, list) else ():
        if isinstance(attempt, dict) and isinstance(attempt.get("payment_method"), str):
            attempt["payment_method"] = attempt["payment_method"].lower()


def _return_constant_etag(x: Exchange) -> None:
    assert x.response is not None
    if "ETag" in x.response.headers:
        x.response.headers["ETag"] = '"always"'


def _accept_low_charge(x: Exchange) -> None:
    """Accept a recurring charge below the minimum by raising its amount."""
    if '"recurring_type": "recurring"' in json.dumps(x.body) and isinstance(x.body.get("amount"), int):
        x.body["amount"] = max(x.body["amount"], 1000)


def _refuse_cancellation(x: Exchange) -> None:
    if x.method == "DELETE":
        x.reply(405, type="MethodNotAllowed", value="no")


def _cancel_without_body(x: Exchange) -> None:
    if x.method == "DELETE" and not x.error:
        x.reply(204)
        x.data = None


def _match_single_etags() -> Alteration:
    """Return an alteration that matches only a single strong ETag."""
    reads: dict[str, Any] = {}

    def match_single_tag(x: Exchange) -> None:
        assert x.response is not None
        tags = (x.options.get("headers") or {}).get("If-None-Match", "")
        if x.is_order:
            reads[x.path] = x.data
        elif x.response.status_code == 304 and ("," in tags or tags.startswith("W/")):
            x.response.status_code, x.data = 200, reads[x.path]
            x.response.headers["Content-Type"] = "application/json"

    return match_single_tag


def _drop_allowed_values(x: Exchange) -> None:
    for violation in x.error.get("violations", ()):
        violation.pop("allowed", None)


def _skip_method_requirements(x: Exchange) -> None:
    """Create a method's page without the fields that the method requires."""
    required = {"pay-later-a": ["order_lines"], "invoice-later-b": ["order_lines", "customer"]}
    methods = x.body.get("payment_methods") if x.method == "POST" else None
    method = str(methods[0]) if isinstance(methods, list) and len(methods) == 1 else ""
    if any(name not in x.body for name in required.get(method, ())):
        del x.body["payment_methods"]


def _hide_ignored_fields(*hidden: str) -> Alteration:
    """Return an alteration that omits some ignored keys from the header."""

    def leave_out(x: Exchange) -> None:
        assert x.response is not None
        names = x.response.headers.get("Sandbox-Ignored-Fields", "").split(", ")
        shown = [name for name in names if not any(each in name for each in hidden)]
        if shown != names:
            x.response.headers["Sandbox-Ignored-Fields"] = ", ".join(shown)

    return leave_out


def _drop_amount_details(x: Exchange) -> None:
    if x.is_order and x.path.count("fields[]=") > 1:
        del x.data["amount_details"]


def _refuse_password(x: Exchange) -> None:
    assert x.response is not None
    auth = x.options.get("auth")
    if isinstance(auth, tuple) and auth[1]:
        x.reply(401, type="Unauthorized", value="no password, please")
        x.response.headers["WWW-Authenticate"] = "Basic"


def _refund_invoice_by_amount(x: Exchange) -> None:
    """Accept a refund of an invoice by amount."""
    if (
        x.path.endswith("/refunds/")
        and [each["path"] for each in x.error.get("violations", ())] == ["order_lines"]
        and "amount" in (x.body or {})
    ):
        x.reply(201)
        x.data = {"id": "r", "status": "completed"}


DEVIATIONS: dict[str, Deviation] = {
    "countries may have three letters": Deviation(
        "CUS-09",
        before=in_customers_sent(
            lambda customer: len(str(customer.get("country"))) == 3 and customer.update(country="NL")
        ),
    ),
    "dates need no dashes": Deviation(
        "CUS-03", before=in_customers_sent(replace_if("birthdate", "19900131", "1990-01-31"))
    ),
    "offsets are ignored": Deviation(
        "QR-16",
        before=lambda x: (
            isinstance(x.body.get("expiration"), str)
            and x.body.update(expiration=x.body["expiration"].replace("+02:00", "+00:00"))
        ),
    ),
    "lists of ETags do not match": Deviation("SET-34", after=_match_single_etags()),
    "violations lack the allowed values": Deviation("SET-05", after=_drop_allowed_values),
    "pages need no lines": Deviation("INV-01 INV-02 PLA-01", before=_skip_method_requirements),
    "inner keys are ignored silently": Deviation("SET-12", after=_hide_ignored_fields("colour", "tip")),
    "a status is ignored silently": Deviation("SET-53", after=_hide_ignored_fields("status")),
    "only the last block counts": Deviation("END-06", after=_drop_amount_details),
    "passwords are refused": Deviation("SET-02", after=_refuse_password),
    "invoices are refunded by amount": Deviation("END-09", after=_refund_invoice_by_amount),
    "only the first event is kept": Deviation(
        "TEV-01", after=in_attempts(replace("events", lambda events: events[:1]))
    ),
    "visits to card pages change nothing": Deviation(
        "STA-04 STA-12",
        after=_of_order_and_attempts(
            lambda each: each["payment_method"] == "credit-card" and each["status"] == "processing", "new"
        ),
    ),
    "modified never changes": Deviation(
        "ORD-19", after=in_orders(lambda order: order.update(modified=order["created"]))
    ),
    "captured attempts stay capturable": Deviation(
        "SET-27",
        after=in_reads(
            lambda order: [
                each.update(is_capturable=True)
                for each in order["transactions"]
                if each.get("is_fully_captured")
            ]
        ),
    ),
    "transfers cannot be cancelled": Deviation(
        "SET-50",
        after=refuse(
            lambda x: x.method == "DELETE" and "bank-transfer" in str(x.data), 409, "OrderNotCancellable"
        ),
    ),
    "return addresses cannot be changed": Deviation("ORD-08 SET-51", before=in_updates(drop("return_url"))),
    "the ETag never changes": Deviation("SET-32 SET-33 SET-34", after=_return_constant_etag),
    "the largest QR size is refused": Deviation("QR-20", after=refuse_values("size", 2000)),
    "the smallest QR size is refused": Deviation("QR-20", after=refuse_values("size", 100)),
    "a QR minimum below the amount is refused": Deviation("QR-09", after=refuse_values("amount_min", 999)),
    "a locale is refused": Deviation("CUS-11", after=refuse_values("locale", "fr-BE")),
    "a type of lines is refused": Deviation("LINE-01 LINE-02", after=refuse_values("type", "store_credit")),
    "a series may charge less": Deviation("LIM-07", before=_accept_low_charge),
    "amount changes after a visit are ignored": Deviation(
        "SET-52", after=_accept(kind="OrderNotUpdatable", method="PUT")
    ),
    "lines are forgotten": Deviation("ORD-16", after=in_reads(drop("order_lines"))),
    "the client is forgotten": Deviation("ORD-18", after=in_reads(drop("client"))),
    "cancellations return no body": Deviation("SET-06 SET-07", after=_cancel_without_body),
    "descriptions are truncated early": Deviation("ORD-06 QR-11", before=_truncate(range(10_000), 14)),
    "descriptions are truncated": Deviation("ORD-06 QR-11", before=_truncate(range(256, 10_000), 255)),
    "descriptions are read without accents": Deviation(
        "ORD-06",
        after=in_reads(replace("description", lambda text: text.encode("ascii", "replace").decode())),
    ),
    "return addresses are forgotten": Deviation("ORD-08", after=in_reads(drop("return_url"))),
    "webhook addresses are forgotten": Deviation("ORD-10", after=in_reads(drop("webhook_url"))),
    "a part of extra is forgotten": Deviation(
        "SET-14",
        after=in_reads(
            lambda order: isinstance(order.get("extra"), dict) and order["extra"].pop("note", None)
        ),
    ),
    "customers cannot be changed": Deviation("ORD-15 SET-51", before=in_updates(drop("customer"))),
    "orders have another field": Deviation("END-02", after=in_orders(put(risk_score=17))),
    "transactions have another field": Deviation("ORD-17", after=in_attempts(put(acquirer="north"))),
    "refunds have only required fields": Deviation("", after=in_refunds(_reduce_refund)),
    "refunds have another field": Deviation("SET-48", after=in_refunds(put(bank_reference="R-1"))),
    "missing values are returned as empty": Deviation("", after=in_orders(_return_empty_values)),
    "orders have no flags": Deviation("SET-26", after=in_orders(drop("flags"))),
    "phone numbers are a string": Deviation(
        "CUS-05 SET-53",
        after=in_orders(lambda order: replace("phone_numbers", ", ".join)(order.get("customer", {}))),
    ),
    "merchant_order_id must be unique": Deviation("ORD-07", after=_require_unique_merchant_id()),
    "orders have at most 50 lines": Deviation(
        "ORD-16",
        after=refuse(lambda x: isinstance(x.body, dict) and len(x.body.get("order_lines") or ()) > 50),
    ),
    "method names ignore case": Deviation("TRQ-02", before=_ignore_case_of_methods),
    "captured orders can be deleted": Deviation(
        "SET-50", after=_accept(kind="OrderNotCancellable", method="DELETE", status="cancelled")
    ),
    "refunds are pending": Deviation("SET-48", after=in_refunds(put(status="pending"))),
    "bad JSON is 422": Deviation(
        "SET-08", {"errors": {"BadRequest": {"status": 422}}}, after=in_errors("BadRequest", 422)
    ),
    "other media types are 400": Deviation(
        "SET-09",
        {"errors": {"UnsupportedMediaType": {"status": 400}}},
        after=in_errors("UnsupportedMediaType", 400),
    ),
    "large bodies are 400": Deviation(
        "SET-09",
        {"errors": {"RequestEntityTooLarge": {"status": 400}}},
        after=in_errors("RequestEntityTooLarge", 400),
    ),
    "addresses have a scheme": Deviation(
        "ORD-24 TX-12",
        {"absolute_urls": True},
        after=_change_text(r'"(order_url|payment_url)": "', r'"\1": "http://'),
    ),
    "invalid requests are 422": Deviation(
        "SET-08",
        {"errors": {"ValidationError": {"status": 422, "type": "InvalidRequest"}}},
        after=in_errors("ValidationError", 422, type="InvalidRequest"),
    ),
    "the currency error has another text": Deviation(
        "",
        {"errors": {name: {"value": "Only euros, please"} for name in ("ORD-02", "ORD-03", "QR-10")}},
        after=_reword_currency_error,
    ),
    "unknown orders are forbidden": Deviation(
        "SET-08",
        {"errors": {"NotFound": {"status": 403, "type": "Forbidden", "value": "This is not yours"}}},
        after=in_errors("NotFound", 403, type="Forbidden", value="This is not yours"),
    ),
    "creations are 200": Deviation("END-02 END-18", after=_return_200),
    "an excessive capture is 400": Deviation(
        "SET-08",
        {
            "errors": {
                "CaptureExceedsRemainder": {
                    "status": 400,
                    "type": "AmountTooHigh",
                    "value": "The amount is too high",
                }
            }
        },
        after=in_errors("CaptureExceedsRemainder", 400, type="AmountTooHigh", value="The amount is too high"),
    ),
    "cards expire after 15 minutes": Deviation(
        "LIM-12", after=in_attempts(_of_cards(replace_if("expiration_period", "PT30M", "PT15M")))
    ),
    "line details have numbers": Deviation("LDET-04", after=in_orders(_convert_line_details)),
    "orders have no ETag": Deviation("SET-32", after=drop_header("ETag")),
    "amounts may be strings": Deviation(
        "SET-11 QR-02",
        before=lambda x: (
            isinstance(x.body.get("amount"), str) and x.body.update(amount=int(x.body["amount"]))
        ),
    ),
    "transfers begin new": Deviation("STA-10", after=_report_new_transfers_as_new),
    "QR amounts are cents": Deviation("QR-01", after=_report_qr_amount_in_cents),
    "QR sizes are clamped": Deviation(
        "QR-20",
        before=lambda x: (
            isinstance(x.body.get("size"), int) and x.body.update(size=min(max(x.body["size"], 100), 2000))
        ),
    ),
    "orders cannot be cancelled": Deviation(
        "SET-08 SET-33 SET-50",
        after=_refuse_cancellation,
    ),
    "a 401 has no challenge": Deviation("SET-02", after=drop_header("WWW-Authenticate")),
    "times end in Z": Deviation("SET-19", after=_change_text(r"\+00:00", "Z")),
    "errors have no violations": Deviation("SET-05", after=lambda x: x.error and x.error.pop("violations")),
    "paths need their slash": Deviation("SET-01", after=_redirect_without_slash),
    "is_capturable is missing": Deviation("SET-27", after=in_attempts(drop("is_capturable"))),
}
