"""Servers that deviate on purpose, with the rules that verify must report."""

from typing import Any, NamedTuple

from payment_sandbox_verify.samples import UNKNOWN_ID
from tests.verification.altering import (
    Record,
    change_text,
    drop,
    drop_header,
    drop_sent_header,
    in_attempts,
    in_attempts_sent,
    in_errors,
    in_orders,
    in_reads,
    in_refunds,
    in_updates,
    of_cards,
    put,
    refuse_values,
    replace,
    replace_if,
    set_status,
)
from tests.verification.exchanges import Alteration, Exchange


class Deviation(NamedTuple):
    """A deviation: the rules that verify must report, and the alterations.

    ``scenes`` names the scenes that show it, with `` | `` between them, if the first scenes of its rules do not.
    ``words`` are part of the reason. A sandbox with the ``settings`` answers as the server does.
    """

    rules: str
    scenes: str = ""
    before: Alteration | None = None
    after: Alteration | None = None
    words: str = ""
    settings: dict[str, Any] = {}


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
        set_status(lambda attempt: attempt["payment_method"] == "bank-transfer", "new")(x)


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


def _return_constant_etag(x: Exchange) -> None:
    assert x.response is not None
    if "ETag" in x.response.headers:
        x.response.headers["ETag"] = '"always"'


def _refuse_cancellation(x: Exchange) -> None:
    if x.method == "DELETE":
        x.reply(405, type="MethodNotAllowed", value="no")


def _cancel_without_body(x: Exchange) -> None:
    if x.method == "DELETE" and not x.error:
        x.reply(204)
        x.data = None


def _drop_allowed_values(x: Exchange) -> None:
    for violation in x.error.get("violations", ()):
        violation.pop("allowed", None)


def _hide_ignored_fields(*hidden: str) -> Alteration:
    """Return an alteration that omits some ignored keys from the header."""

    def leave_out(x: Exchange) -> None:
        assert x.response is not None
        names = x.response.headers.get("Sandbox-Ignored-Fields", "").split(", ")
        shown = [name for name in names if not any(each in name for each in hidden)]
        if shown != names:
            x.response.headers["Sandbox-Ignored-Fields"] = ", ".join(shown)

    return leave_out


def _refuse_password(x: Exchange) -> None:
    assert x.response is not None
    auth = x.options.get("auth")
    if isinstance(auth, tuple) and auth[1]:
        x.reply(401, type="Unauthorized", value="no password, please")
        x.response.headers["WWW-Authenticate"] = "Basic"


def _return_old_etag() -> Alteration:
    """Return an alteration by which a PUT answers the ETag from before the change."""
    etags: dict[str, str] = {}

    def alter(x: Exchange) -> None:
        if x.response is None or not x.is_order:
            return
        if x.method == "PUT" and x.data["id"] in etags:
            x.response.headers["ETag"] = etags[x.data["id"]]
        else:
            etags[x.data["id"]] = x.response.headers.get("ETag", "")

    return alter


def _name_own_transaction(attempt: Record) -> None:
    details = attempt.get("payment_method_details") or {}
    if details.get("first_authorised_transaction_id"):
        details["first_authorised_transaction_id"] = attempt["id"]


def _add_payment_url(attempt: Record) -> None:
    if (attempt.get("payment_method_details") or {}).get("one_click_type") == "one-click":
        attempt["payment_url"] = "shop.invalid/pay/"


def _return_page(x: Exchange) -> None:
    if x.response is not None and x.response.status_code == 404:
        x.response.headers["Content-Type"] = "text/html"
        x.data = "<h1>Not found</h1>"


def _weaken_etags(x: Exchange) -> None:
    if x.response is not None and "ETag" in x.response.headers:
        x.response.headers["ETag"] = f"W/{x.response.headers['ETag']}"


def _find_no_order_first(x: Exchange) -> None:
    if UNKNOWN_ID in x.path and x.error.get("type") == "ValidationError":
        x.reply(404, type="NotFound", value="no such order")


DEVIATIONS: dict[str, Deviation] = {
    "offsets are ignored": Deviation(
        "QR-16",
        before=lambda x: (
            isinstance(x.body.get("expiration"), str)
            and x.body.update(expiration=x.body["expiration"].replace("+02:00", "+00:00"))
        ),
    ),
    "violations lack the allowed values": Deviation("SET-05", after=_drop_allowed_values),
    "inner keys are ignored silently": Deviation("SET-12", after=_hide_ignored_fields("colour", "tip")),
    "a status is ignored silently": Deviation("SET-53", after=_hide_ignored_fields("status")),
    "passwords are refused": Deviation("SET-02", after=_refuse_password),
    "only the first event is kept": Deviation(
        "TEV-01",
        "card challenge-configurable, fail",
        after=in_attempts(replace("events", lambda events: events[:1])),
    ),
    "visits to card pages change nothing": Deviation(
        "STA-04 STA-12",
        after=set_status(
            lambda each: each["payment_method"] == "credit-card" and each["status"] == "processing", "new"
        ),
    ),
    "modified never changes": Deviation(
        "ORD-19", "conditions", after=in_orders(lambda order: order.update(modified=order["created"]))
    ),
    "return addresses cannot be changed": Deviation(
        "ORD-08 SET-51", "changed return_url", before=in_updates(drop("return_url"))
    ),
    "the ETag never changes": Deviation(
        "SET-32 SET-33 SET-34",
        "repeated requests | invoice-later-b authorization, captured in part, then in full | conditions",
        after=_return_constant_etag,
    ),
    "the largest QR size is refused": Deviation("QR-20", after=refuse_values("size", 2000)),
    "a locale is refused": Deviation("CUS-11", after=refuse_values("locale", "fr-BE")),
    "lines are forgotten": Deviation("ORD-16", after=in_reads(drop("order_lines"))),
    "cancellations return no body": Deviation(
        "SET-06 SET-07", "webhook addresses", after=_cancel_without_body
    ),
    "descriptions are truncated": Deviation("ORD-06 QR-11", before=_truncate(range(256, 10_000), 255)),
    "orders have another field": Deviation("END-02", after=in_orders(put(risk_score=17))),
    "transactions have another field": Deviation(
        "ORD-17", "card challenge-configurable, fail", after=in_attempts(put(acquirer="north"))
    ),
    "refunds have only required fields": Deviation(
        "",
        "invoice-later-b authorization, captured in part, then refunded | credit-card, paid",
        after=in_refunds(_reduce_refund),
    ),
    "refunds have another field": Deviation("SET-48", after=in_refunds(put(bank_reference="R-1"))),
    "missing values are returned as empty": Deviation(
        "",
        "a whole order | credit-card, paid | new wallet-qr order | conditions",
        after=in_orders(_return_empty_values),
    ),
    "orders have no flags": Deviation("SET-26", after=in_orders(drop("flags"))),
    "phone numbers are a string": Deviation(
        "CUS-05 SET-53",
        after=in_orders(lambda order: replace("phone_numbers", ", ".join)(order.get("customer", {}))),
    ),
    "refunds are pending": Deviation("SET-48", after=in_refunds(put(status="pending"))),
    "bad JSON is 422": Deviation(
        "SET-08", settings={"errors": {"BadRequest": {"status": 422}}}, after=in_errors("BadRequest", 422)
    ),
    "other media types are 400": Deviation(
        "SET-09",
        settings={"errors": {"UnsupportedMediaType": {"status": 400}}},
        after=in_errors("UnsupportedMediaType", 400),
    ),
    "large bodies are 400": Deviation(
        "SET-09",
        settings={"errors": {"RequestEntityTooLarge": {"status": 400}}},
        after=in_errors("RequestEntityTooLarge", 400),
    ),
    "addresses have a scheme": Deviation(
        "ORD-24 TX-12",
        settings={"absolute_urls": True},
        after=change_text(r'"(order_url|payment_url)": "', r'"\1": "http://'),
    ),
    "invalid requests are 422": Deviation(
        "SET-08",
        settings={"errors": {"ValidationError": {"status": 422, "type": "InvalidRequest"}}},
        after=in_errors("ValidationError", 422, type="InvalidRequest"),
    ),
    "the currency error has another text": Deviation(
        "",
        settings={
            "errors": {name: {"value": "Only euros, please"} for name in ("ORD-02", "ORD-03", "QR-10")}
        },
        after=_reword_currency_error,
    ),
    "unknown orders are forbidden": Deviation(
        "SET-08",
        settings={"errors": {"NotFound": {"status": 403, "type": "Forbidden", "value": "This is not yours"}}},
        after=in_errors("NotFound", 403, type="Forbidden", value="This is not yours"),
    ),
    "creations are 200": Deviation("END-02 END-18", after=_return_200),
    "an excessive capture is 400": Deviation(
        "SET-08",
        settings={
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
        "LIM-12", after=in_attempts(of_cards(replace_if("expiration_period", "PT30M", "PT15M")))
    ),
    "line details have numbers": Deviation(
        "LDET-04", "captured with an empty body", after=in_orders(_convert_line_details)
    ),
    "orders have no ETag": Deviation("SET-32", after=drop_header("ETag")),
    "transfers begin new": Deviation("STA-10", after=_report_new_transfers_as_new),
    "orders cannot be cancelled": Deviation("SET-08 SET-33 SET-50", after=_refuse_cancellation),
    "a 401 has no challenge": Deviation("SET-02", after=drop_header("WWW-Authenticate")),
    "times end in Z": Deviation("SET-19", "repeated requests", after=change_text(r"\+00:00", "Z")),
    "errors have no violations": Deviation("SET-05", after=lambda x: x.error and x.error.pop("violations")),
    "is_capturable is missing": Deviation(
        "SET-27", "card challenge-configurable, fail", after=in_attempts(drop("is_capturable"))
    ),
    "capture modes ignore case": Deviation(
        "TRQ-06",
        before=in_attempts_sent(replace_if("capture_mode", "MANUAL", "manual")),
        words="of 'MANUAL': 201, not 400",
    ),
    "changes answer the old ETag": Deviation(
        "SET-32", after=_return_old_etag(), words="a change: the etag is <ETag 1 of step"
    ),
    "cards name their own transaction": Deviation(
        "CARD-21", after=in_attempts(_name_own_transaction), words="first_authorised_transaction_id is <id"
    ),
    "one-click payments have a page": Deviation(
        "TX-13", after=in_attempts(_add_payment_url), words="payment_url is present, but not in the sandbox"
    ),
    "periods are respelled": Deviation(
        "SET-20",
        "order: expiration_period",
        after=in_orders(replace_if("expiration_period", "PT60M", "PT1H")),
        words="'PT1H', not 'PT60M'",
    ),
    "only the last of two blocks is returned": Deviation(
        "END-06",
        "new invoice-later-b order",
        after=lambda x: (
            x.path.endswith("order_line_details&fields[]=amount_details")
            and isinstance(x.data, dict)
            and drop("order_line_details")(x.data)
        ),
        words="order_line_details is missing",
    ),
    "unknown orders have a page": Deviation(
        "SET-03", "calls on an unknown order", after=_return_page, words="no error report, but text/html"
    ),
    "ETags are weak": Deviation("SET-32", after=_weaken_etags, words="the etag is <weak ETag 1 of step 1>"),
    "captures ignore conditions": Deviation(
        "IFM-02",
        before=drop_sent_header("If-Match", "/captures/orderlines/"),
        words="stale ETag: 200, not 412 PreconditionFailed",
    ),
    "repeated requests create again": Deviation(
        "SET-71", before=drop_sent_header("Idempotency-Key"), words="id is <id 1 of step 3"
    ),
    "unknown orders are found first": Deviation(
        "SET-08", after=_find_no_order_first, words="404 NotFound, not 400"
    ),
}
