"""Servers that deviate on purpose, with the rules that verify must report."""

import json
import re
from typing import Any, NamedTuple

from tests.verification.exchanges import Alteration, Exchange


class Deviation(NamedTuple):
    """A deviation: its alterations, the rules that verify must report, and the settings that reproduce it."""

    rules: str
    settings: dict[str, Any] = {}
    before: Alteration | None = None
    after: Alteration | None = None


def _accept_authorizations(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order else ():
        if attempt.get("is_capturable") and attempt["payment_method"] == "credit-card":
            x.data["status"] = attempt["status"] = "accepted"


def _add_schemes(x: Exchange) -> None:
    text = json.dumps(x.data)
    x.data = json.loads(re.sub(r'"(order_url|payment_url)": "', r'"\1": "http://', text))


def _report_refunds_as_processing(x: Exchange) -> None:
    if isinstance(x.data, dict) and "refund_of_order_id" in x.data:
        x.data["status"] = "processing"


def _return_422(x: Exchange) -> None:
    if x.error.get("type") == "ValidationError":
        x.reply(422)
        x.error["type"] = "InvalidRequest"


def _reword_currency_error(x: Exchange) -> None:
    if x.error.get("value", "").startswith("currency"):
        x.error["value"] = "Only euros, please"


def _forbid_unknown_orders(x: Exchange) -> None:
    if x.error.get("type") == "NotFound":
        x.reply(403, type="Forbidden", value="This is not yours")


def _refuse_unknown_key(x: Exchange) -> None:
    if isinstance(x.body, dict) and "amuont" in x.body:
        x.reply(400, type="ValidationError", value="amuont is not a known key")


def _reduce_customer(x: Exchange) -> None:
    if x.is_order and "customer" in x.data:
        x.data["customer"] = {name: x.data["customer"].get(name) for name in ("country", "ip_address")}


def _return_200(x: Exchange) -> None:
    assert x.response is not None
    x.response.status_code = 200 if x.response.status_code == 201 else x.response.status_code


def _rename_capture_error(x: Exchange) -> None:
    if x.error.get("type") == "CaptureExceedsRemainder":
        x.reply(400, type="AmountTooHigh", value="The amount is too high")


def _shorten_card_expiration(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order else ():
        if attempt["payment_method"] == "credit-card" and attempt["expiration_period"] == "PT30M":
            attempt["expiration_period"] = "PT15M"


def _convert_line_details(x: Exchange) -> None:
    for line in x.data.get("order_line_details", ()) if x.is_order else ():
        line.update(amount=int(line["amount"]), quantity=int(line["quantity"]))


def _drop_etag(x: Exchange) -> None:
    assert x.response is not None
    x.response.headers.pop("ETag", None)


def _accept_string_amount(x: Exchange) -> None:
    if isinstance(x.body.get("amount"), str):
        x.body["amount"] = int(x.body["amount"])


def _report_transfers_as_new(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order and x.method == "POST" else ():
        if attempt["payment_method"] == "bank-transfer":
            x.data["status"] = attempt["status"] = "new"


def _report_qr_amount_in_cents(x: Exchange) -> None:
    if isinstance(x.data, dict) and "qr_url" in x.data:
        x.data["amount"] = round(float(x.data["amount"]) * 100)


def _clamp_qr_size(x: Exchange) -> None:
    if isinstance(x.body.get("size"), int):
        x.body["size"] = min(max(x.body["size"], 100), 2000)


def _refuse_cancellation(x: Exchange) -> None:
    if x.method == "DELETE":
        x.reply(405, type="MethodNotAllowed", value="no")


def _drop_challenge(x: Exchange) -> None:
    assert x.response is not None
    x.response.headers.pop("WWW-Authenticate", None)


def _end_times_in_z(x: Exchange) -> None:
    x.data = json.loads(json.dumps(x.data).replace("+00:00", "Z"))


def _drop_violations(x: Exchange) -> None:
    if x.error:
        del x.error["violations"]


def _refuse_one_click(x: Exchange) -> None:
    details = str((x.body or {}).get("transactions")) if isinstance(x.body, dict) else ""
    if "one_click_type" in details and not x.error:
        x.reply(400, type="ValidationError", value="not enabled")


def _redirect_without_slash(x: Exchange) -> None:
    if not x.path.partition("?")[0].endswith("/"):
        x.reply(301)
        x.data = None


def _disable_wallet_qr(x: Exchange) -> None:
    wallet = "wallet-qr"
    if isinstance(x.data, dict) and wallet in x.data.get("payment_methods", ()) and "currencies" in x.path:
        del x.data["payment_methods"][wallet]
    if isinstance(x.body, dict) and wallet in str(x.body.get("transactions")) and not x.error:
        x.reply(400, type="ValidationError", value="not enabled")


def _drop_is_capturable(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order else ():
        del attempt["is_capturable"]


def _cancel_captured_order(x: Exchange) -> None:
    """Cancel a paid order; a stale cancellation is still refused with 412."""
    if x.method == "DELETE" and x.error.get("type") == "OrderNotCancellable":
        x.reply(200)
        x.data = {"id": x.path.split("/")[3], "status": "cancelled"}


def _report_refunds_as_pending(x: Exchange) -> None:
    if isinstance(x.data, dict) and "refund_of_order_id" in x.data:
        x.data["status"] = "pending"


def _return_422_for_bad_json(x: Exchange) -> None:
    if x.error.get("type") == "BadRequest" and x.body is None:
        x.reply(422)


def _return_400_for_media_type(x: Exchange) -> None:
    if x.error.get("status") == 415:
        x.reply(400)


def _return_400_for_large_body(x: Exchange) -> None:
    if x.error.get("status") == 413:
        x.reply(400)


def _truncate_description(x: Exchange) -> None:
    if len(str(x.body.get("description"))) in range(256, 10_000):
        x.body["description"] = x.body["description"][:255]


def _drop_from_reads(*names: str) -> Alteration:
    """Return an alteration that drops fields from later reads of an order."""

    def forget(x: Exchange) -> None:
        if x.is_order and x.method == "GET":
            for name in names:
                x.data.pop(name, None)

    return forget


def _replace_accents(x: Exchange) -> None:
    if x.is_order and x.method == "GET" and "description" in x.data:
        x.data["description"] = x.data["description"].encode("ascii", "replace").decode()


def _ignore_customer_change(x: Exchange) -> None:
    if x.method == "PUT":
        x.body.pop("customer", None)


def _drop_note(x: Exchange) -> None:
    if x.is_order and x.method == "GET" and isinstance(x.data.get("extra"), dict):
        x.data["extra"].pop("note", None)


def _add_order_field(x: Exchange) -> None:
    if x.is_order:
        x.data["risk_score"] = 17


def _add_attempt_field(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order else ():
        attempt["acquirer"] = "north"


REQUIRED_REFUND_FIELDS = tuple(
    [
        "id",
        "amount",
        "currency",
        "status",
        "transactions",
        "flags",
        "refund_of_order_id",
        "created",
        "modified",
    ]
)


def _reduce_refund(x: Exchange) -> None:
    """Reduce refunds to their required fields."""
    if isinstance(x.data, dict) and "refund_of_order_id" in x.data:
        x.data = {name: x.data[name] for name in REQUIRED_REFUND_FIELDS if name in x.data}


def _add_refund_field(x: Exchange) -> None:
    if isinstance(x.data, dict) and "refund_of_order_id" in x.data:
        x.data["bank_reference"] = "R-1"


def _return_empty_values(x: Exchange) -> None:
    """Return fields that were not sent as empty values."""
    lists: dict[str, Any] = {"order_lines": [], "payment_methods": []}
    empty = {**lists, "extra": {}, "return_url": "", "reason": None}
    if x.is_order:
        x.data = {**empty, **x.data, "refund_of_order_id": x.data.get("refund_of_order_id")}


def _drop_flags(x: Exchange) -> None:
    if x.is_order:
        x.data.pop("flags", None)


def _join_phone_numbers(x: Exchange) -> None:
    customer = x.data.get("customer", {}) if x.is_order else {}
    if "phone_numbers" in customer:
        customer["phone_numbers"] = ", ".join(customer["phone_numbers"])


def _require_unique_merchant_id() -> Alteration:
    """Return an alteration that refuses the merchant_order_id of another order."""
    seen: set[str] = set()

    def check(x: Exchange) -> None:
        merchant_id = x.body.get("merchant_order_id") if isinstance(x.body, dict) else None
        if x.method == "POST" and x.path == "/v1/orders/" and isinstance(merchant_id, str) and not x.error:
            if merchant_id in seen:
                x.reply(400, type="ValidationError", value="merchant_order_id is known already")
            seen.add(merchant_id)

    return check


def _limit_order_lines(x: Exchange) -> None:
    if isinstance(x.body, dict) and len(x.body.get("order_lines") or ()) > 50 and not x.error:
        x.reply(400, type="ValidationError", value="too many lines")


def _ignore_case_of_methods(x: Exchange) -> None:
    attempts = x.body.get("transactions")
    for attempt in attempts if isinstance(attempts, list) else ():
        if isinstance(attempt, dict) and isinstance(attempt.get("payment_method"), str):
            attempt["payment_method"] = attempt["payment_method"].lower()


def _keep_capturable(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order and x.method == "GET" else ():
        if attempt.get("is_fully_captured"):
            attempt["is_capturable"] = True


def _refuse_transfer_cancellation(x: Exchange) -> None:
    """Refuse the cancellation of a transfer that is processing."""
    if x.method == "DELETE" and "bank-transfer" in str(x.data):
        x.reply(409, type="OrderNotCancellable", value="a transfer is on its way")


def _ignore_return_url_change(x: Exchange) -> None:
    if x.method == "PUT":
        x.body.pop("return_url", None)


def _return_constant_etag(x: Exchange) -> None:
    assert x.response is not None
    if "ETag" in x.response.headers:
        x.response.headers["ETag"] = '"always"'


def _refuse(name: str, *values: Any) -> Alteration:
    """Return an alteration that refuses these values of a field anywhere in the body."""
    texts = [json.dumps({name: value})[1:-1] for value in values]

    def refuse(x: Exchange) -> None:
        if x.method == "POST" and not x.error and any(text in json.dumps(x.body) for text in texts):
            x.reply(400, type="ValidationError", value=f"{name} cannot be that")

    return refuse


def _accept_low_charge(x: Exchange) -> None:
    """Accept a recurring charge below the minimum by raising its amount."""
    if '"recurring_type": "recurring"' in json.dumps(x.body) and isinstance(x.body.get("amount"), int):
        x.body["amount"] = max(x.body["amount"], 1000)


def _ignore_late_change(x: Exchange) -> None:
    """Accept and ignore an amount change that comes too late."""
    if x.method == "PUT" and x.error.get("type") == "OrderNotUpdatable":
        x.reply(200)
        x.data = {"id": x.path.split("/")[3]}


def _cancel_without_body(x: Exchange) -> None:
    if x.method == "DELETE" and not x.error:
        x.reply(204)
        x.data = None


def _truncate_description_at(length: int) -> Alteration:
    """Return an alteration that truncates descriptions to this length."""

    def cut(x: Exchange) -> None:
        if isinstance(x.body.get("description"), str) and len(x.body["description"]) < 10_000:
            x.body["description"] = x.body["description"][:length]

    return cut


def _keep_first_event(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order else ():
        attempt["events"] = attempt["events"][:1]


def _ignore_card_visit(x: Exchange) -> None:
    """Report a card order as new after a visit to its payment page."""
    for attempt in x.data["transactions"] if x.is_order else ():
        if attempt["payment_method"] == "credit-card" and attempt["status"] == "processing":
            attempt["status"] = x.data["status"] = "new"


def _freeze_modified(x: Exchange) -> None:
    if x.is_order:
        x.data["modified"] = x.data["created"]


def _accept_long_country(x: Exchange) -> None:
    if isinstance(x.body.get("customer"), dict) and len(str(x.body["customer"].get("country"))) == 3:
        x.body["customer"]["country"] = "NL"


def _accept_compact_date(x: Exchange) -> None:
    if isinstance(x.body.get("customer"), dict) and x.body["customer"].get("birthdate") == "19900131":
        x.body["customer"]["birthdate"] = "1990-01-31"


def _ignore_offset(x: Exchange) -> None:
    if isinstance(x.body.get("expiration"), str):
        x.body["expiration"] = x.body["expiration"].replace("+02:00", "+00:00")


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
    "countries may have three letters": Deviation("CUS-09", {}, before=_accept_long_country),
    "dates need no dashes": Deviation("CUS-03", {}, before=_accept_compact_date),
    "offsets are ignored": Deviation("QR-16", {}, before=_ignore_offset),
    "lists of ETags do not match": Deviation("SET-34", {}, after=_match_single_etags()),
    "violations lack the allowed values": Deviation("SET-05", {}, after=_drop_allowed_values),
    "pages need no lines": Deviation("INV-01 INV-02 PLA-01", {}, before=_skip_method_requirements),
    "inner keys are ignored silently": Deviation("SET-12", {}, after=_hide_ignored_fields("colour", "tip")),
    "a status is ignored silently": Deviation("SET-53", {}, after=_hide_ignored_fields("status")),
    "only the last block counts": Deviation("END-06", {}, after=_drop_amount_details),
    "passwords are refused": Deviation("SET-02", {}, after=_refuse_password),
    "invoices are refunded by amount": Deviation("END-09", {}, after=_refund_invoice_by_amount),
    "only the first event is kept": Deviation("TEV-01", {}, after=_keep_first_event),
    "visits to card pages change nothing": Deviation("STA-04 STA-12", {}, after=_ignore_card_visit),
    "modified never changes": Deviation("ORD-19", {}, after=_freeze_modified),
    "captured attempts stay capturable": Deviation("SET-27", {}, after=_keep_capturable),
    "transfers cannot be cancelled": Deviation("SET-50", {}, after=_refuse_transfer_cancellation),
    "return addresses cannot be changed": Deviation("ORD-08 SET-51", {}, before=_ignore_return_url_change),
    "the ETag never changes": Deviation("SET-32 SET-33 SET-34", {}, after=_return_constant_etag),
    "the largest QR size is refused": Deviation("QR-20", {}, after=_refuse("size", 2000)),
    "the smallest QR size is refused": Deviation("QR-20", {}, after=_refuse("size", 100)),
    "a QR minimum below the amount is refused": Deviation("QR-09", {}, after=_refuse("amount_min", 999)),
    "a locale is refused": Deviation("CUS-11", {}, after=_refuse("locale", "fr-BE")),
    "a type of lines is refused": Deviation("LINE-01 LINE-02", {}, after=_refuse("type", "store_credit")),
    "a series may charge less": Deviation("LIM-07", {}, before=_accept_low_charge),
    "amount changes after a visit are ignored": Deviation("SET-52", {}, after=_ignore_late_change),
    "lines are forgotten": Deviation("ORD-16", {}, after=_drop_from_reads("order_lines")),
    "the client is forgotten": Deviation("ORD-18", {}, after=_drop_from_reads("client")),
    "cancellations return no body": Deviation("SET-06 SET-07", {}, after=_cancel_without_body),
    "descriptions are truncated early": Deviation("ORD-06 QR-11", {}, before=_truncate_description_at(14)),
    "descriptions are truncated": Deviation("ORD-06 QR-11", {}, before=_truncate_description),
    "descriptions are read without accents": Deviation("ORD-06", {}, after=_replace_accents),
    "return addresses are forgotten": Deviation("ORD-08", {}, after=_drop_from_reads("return_url")),
    "webhook addresses are forgotten": Deviation("ORD-10", {}, after=_drop_from_reads("webhook_url")),
    "a part of extra is forgotten": Deviation("SET-14", {}, after=_drop_note),
    "customers cannot be changed": Deviation("ORD-15 SET-51", {}, before=_ignore_customer_change),
    "orders have another field": Deviation("END-02", {}, after=_add_order_field),
    "transactions have another field": Deviation("ORD-17", {}, after=_add_attempt_field),
    "refunds have only required fields": Deviation("", {}, after=_reduce_refund),
    "refunds have another field": Deviation("SET-48", {}, after=_add_refund_field),
    "missing values are returned as empty": Deviation("", {}, after=_return_empty_values),
    "orders have no flags": Deviation("SET-26", {}, after=_drop_flags),
    "phone numbers are a string": Deviation("CUS-05 SET-53", {}, after=_join_phone_numbers),
    "merchant_order_id must be unique": Deviation("ORD-07", {}, after=_require_unique_merchant_id()),
    "orders have at most 50 lines": Deviation("ORD-16", {}, after=_limit_order_lines),
    "method names ignore case": Deviation("TRQ-02", {}, before=_ignore_case_of_methods),
    "captured orders can be deleted": Deviation("SET-50", {}, after=_cancel_captured_order),
    "refunds are pending": Deviation("SET-48", {}, after=_report_refunds_as_pending),
    "bad JSON is 422": Deviation(
        "SET-08", {"errors": {"BadRequest": {"status": 422}}}, after=_return_422_for_bad_json
    ),
    "other media types are 400": Deviation(
        "SET-09", {"errors": {"UnsupportedMediaType": {"status": 400}}}, after=_return_400_for_media_type
    ),
    "large bodies are 400": Deviation(
        "SET-09", {"errors": {"RequestEntityTooLarge": {"status": 400}}}, after=_return_400_for_large_body
    ),
    "addresses have a scheme": Deviation("ORD-24 TX-12", {"absolute_urls": True}, after=_add_schemes),
    "invalid requests are 422": Deviation(
        "SET-08",
        {"errors": {"ValidationError": {"status": 422, "type": "InvalidRequest"}}},
        after=_return_422,
    ),
    "the currency error has another text": Deviation(
        "",
        {"errors": {name: {"value": "Only euros, please"} for name in ("ORD-02", "ORD-03", "QR-10")}},
        after=_reword_currency_error,
    ),
    "unknown orders are forbidden": Deviation(
        "SET-08",
        {"errors": {"NotFound": {"status": 403, "type": "Forbidden", "value": "This is not yours"}}},
        after=_forbid_unknown_orders,
    ),
    "creations are 200": Deviation("END-02 END-18", {}, after=_return_200),
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
        after=_rename_capture_error,
    ),
    "cards expire after 15 minutes": Deviation("LIM-12", {}, after=_shorten_card_expiration),
    "line details have numbers": Deviation("LDET-04", {}, after=_convert_line_details),
    "orders have no ETag": Deviation("SET-32", {}, after=_drop_etag),
    "amounts may be strings": Deviation("SET-11 QR-02", {}, before=_accept_string_amount),
    "transfers begin new": Deviation("STA-10", {}, after=_report_transfers_as_new),
    "QR amounts are cents": Deviation("QR-01", {}, after=_report_qr_amount_in_cents),
    "QR sizes are clamped": Deviation("QR-20", {}, before=_clamp_qr_size),
    "orders cannot be cancelled": Deviation("SET-08 SET-33 SET-50", {}, after=_refuse_cancellation),
    "a 401 has no challenge": Deviation("SET-02", {}, after=_drop_challenge),
    "times end in Z": Deviation("SET-19", {}, after=_end_times_in_z),
    "errors have no violations": Deviation("SET-05", {}, after=_drop_violations),
    "paths need their slash": Deviation("SET-01", {}, after=_redirect_without_slash),
    "is_capturable is missing": Deviation("SET-27", {}, after=_drop_is_capturable),
}
