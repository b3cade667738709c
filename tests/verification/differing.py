"""Servers that deviate on purpose, with the rules that verify must report."""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from payment_sandbox_verify.samples import UNKNOWN_ID
from tests.verification.exchanges import Alteration, Exchange

Record = dict[str, Any]
Change = Callable[[Record], object]
"""A change of an order, a transaction or a body in place."""


class Deviation(NamedTuple):
    """A deviation: the rules that verify must report, and the alterations.

    ``scenes`` names the scenes that show it, with `` | `` between them, if the first scenes of its rules do not.
    ``words`` are part of the reason.
    """

    rules: str
    scenes: str = ""
    before: Alteration | None = None
    after: Alteration | None = None
    words: str = ""


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


def put(**values: Any) -> Change:
    """Set these values."""
    return lambda record: record.update(values)


def drop(*names: str) -> Change:
    """Drop these fields."""
    return lambda record: [record.pop(name, None) for name in names]


def drop_header(name: str) -> Alteration:
    """Drop a header of each answer."""
    return lambda x: x.response is not None and x.response.headers.pop(name, None)


def change_text(old: str, new: str) -> Alteration:
    """Replace a pattern in the text of each answer."""

    def change(x: Exchange) -> None:
        x.data = json.loads(re.sub(old, new, json.dumps(x.data)))

    return change


def _return_200(x: Exchange) -> None:
    assert x.response is not None
    x.response.status_code = 200 if x.response.status_code == 201 else x.response.status_code


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


def in_objects(change: Callable[[Record], Any]) -> Alteration:
    """Replace each object of each answer, innermost first."""

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        return (
            change({key: walk(inner) for key, inner in value.items()}) if isinstance(value, dict) else value
        )

    return lambda x: setattr(x, "data", walk(x.data))


def _spell_differently(record: Record) -> Record:
    """Spell the values of an object in another way that JSON and the specification allow."""
    is_whole = {name: type(value) is int for name, value in record.items()}
    spelled: Record = {name: float(value) if is_whole[name] else value for name, value in record.items()}
    unordered = ("flags", "order_line_details")
    lists = {name: spelled[name][::-1] for name in unordered if isinstance(spelled.get(name), list)}
    return {**spelled, **lists, **({"consumer_name": None} if "consumer_name" in spelled else {})}


def _spell_media_type(x: Exchange) -> None:
    if x.response is not None and "Content-Type" in x.response.headers:
        x.response.headers["Content-Type"] = "Application/JSON; Charset=UTF-8"


RECORDS = "credit-card, paid | bank-redirect-nl, paid | recurring | lists | QR requests"


def _find_no_order_first(x: Exchange) -> None:
    if UNKNOWN_ID in x.path and x.error.get("type") == "ValidationError":
        x.reply(404, type="NotFound", value="no such order")


AUTHORIZATION = "credit-card authorization"


def _answer_equal_refunds_once() -> Alteration:
    """Return an alteration that answers a refund with the first one of the same body."""
    answers: dict[str, Record] = {}

    def alter(x: Exchange) -> None:
        if x.path.endswith("/refunds/") and not x.error:
            x.data = answers.setdefault(f"{x.path}{x.body}", x.data)

    return alter


def _capture_less_again() -> Alteration:
    """Return an alteration that reduces a capture that was sent before to a cent."""
    seen: set[str] = set()

    def alter(x: Exchange) -> None:
        if x.path.endswith("/captures/amount/") and x.options["headers"].get("If-Match") != '"stale"':
            request = f"{x.path}{x.body}"
            x.body.update({"amount": 1} if request in seen else {})
            seen.add(request)

    return alter


def _show_tokens_once() -> Alteration:
    """Return an alteration that omits a token in answers after the first."""
    shown: set[str] = set()

    def alter(x: Exchange) -> None:
        for attempt in x.data["transactions"] if x.is_order and x.data["amount"] == 1000 else ():
            details = attempt.get("payment_method_details") or {}
            if "first" in details.values() and details.get("vault_token"):
                if details["vault_token"] in shown:
                    del details["vault_token"]
                else:
                    shown.add(details["vault_token"])

    return alter


def _store_failed_card(attempt: Record) -> None:
    if attempt["status"] == "error":
        attempt["payment_method_details"]["vault_token"] = UNKNOWN_ID


def _refuse_charset(x: Exchange) -> None:
    if "charset" in x.options["headers"].get("Content-Type", ""):
        x.reply(415, type="UnsupportedMediaType", value="no charset")


def _count_one_cent_more(details: Record) -> None:
    if details.get("captured"):
        details["captured"] += 1


DEVIATIONS: dict[str, Deviation] = {
    "offsets are ignored": Deviation(
        "QR-16",
        before=lambda x: (
            isinstance(x.body.get("expiration"), str)
            and x.body.update(expiration=x.body["expiration"].replace("+02:00", "+00:00"))
        ),
    ),
    "modified never changes": Deviation(
        "ORD-19", "conditions", after=in_orders(lambda order: order.update(modified=order["created"]))
    ),
    "violations lack the allowed values": Deviation("SET-05", after=_drop_allowed_values),
    "inner keys are ignored silently": Deviation("SET-12", after=_hide_ignored_fields("colour", "tip")),
    "a status is ignored silently": Deviation("SET-53", after=_hide_ignored_fields("status")),
    "only the first event is kept": Deviation(
        "TEV-01",
        "card challenge-configurable, fail",
        after=in_attempts(lambda attempt: attempt.update(events=attempt["events"][:1])),
    ),
    "the ETag never changes": Deviation(
        "SET-32 SET-33 SET-34",
        "repeated requests | invoice-later-b authorization, captured in part, then in full | conditions",
        after=_return_constant_etag,
    ),
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
    "refunds are pending": Deviation("SET-48", after=in_refunds(put(status="pending"))),
    "creations are 200": Deviation("END-02 END-18", after=_return_200),
    "line details have numbers": Deviation(
        "LDET-04",
        "captured with an empty body",
        after=in_orders(
            lambda order: [
                each.update(amount=int(each["amount"])) for each in order.get("order_line_details", ())
            ]
        ),
    ),
    "orders have no ETag": Deviation("SET-32", after=drop_header("ETag")),
    "orders cannot be cancelled": Deviation("SET-08 SET-33 SET-50", after=_refuse_cancellation),
    "a 401 has no challenge": Deviation("SET-02", after=drop_header("WWW-Authenticate")),
    "times end in Z": Deviation("SET-19", "repeated requests", after=change_text(r"\+00:00", "Z")),
    "errors have no violations": Deviation("SET-05", after=lambda x: x.error and x.error.pop("violations")),
    "changes answer the old ETag": Deviation(
        "SET-32",
        after=_return_old_etag(),
        words='PUT /v1/orders/{id}/ {"description": "Changed"}: the etag is <ETag of step',
    ),
    "one-click payments have a page": Deviation(
        "TX-13",
        after=in_attempts(_add_payment_url),
        words="payment_url is an address without a scheme, expected no such field",
    ),
    "periods are respelled": Deviation(
        "SET-20",
        "order: expiration_period",
        after=change_text('"PT60M"', '"PT1H"'),
        words="'PT1H', expected 'PT60M'",
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
        "SET-03",
        "calls on an unknown order",
        after=_return_page,
        words="answered text/html, expected an error report with its status and a text",
    ),
    "ETags are weak": Deviation("SET-32", after=_weaken_etags, words="the etag is <weak ETag of step 1>"),
    "keys are in reverse order": Deviation(
        "", RECORDS, after=in_objects(lambda record: dict(reversed(record.items())))
    ),
    "values are spelled differently": Deviation(
        "",
        f"{RECORDS} | pay-later-a authorization, captured by lines",
        after=in_objects(_spell_differently),
    ),
    "media types are spelled differently": Deviation("", "repeated requests", after=_spell_media_type),
    "ids have another form": Deviation(
        "SET-19",
        "repeated requests | QR requests",
        after=change_text(r'("merchant_id": ")[0-9a-f-]{36}', r"\1merchant_7"),
    ),
    "an equal refund is answered with the first one": Deviation(
        "SET-48", f"{AUTHORIZATION}, with each amount twice", after=_answer_equal_refunds_once()
    ),
    "an equal capture takes a cent": Deviation(
        "SET-47 SET-48 VOID-01", f"{AUTHORIZATION}, with each amount twice", before=_capture_less_again()
    ),
    "refunds are a cent more": Deviation(
        "SET-48",
        "credit-card, paid",
        after=in_refunds(lambda refund: refund.update(amount=refund["amount"] + 1)),
    ),
    "only the last attempt is shown": Deviation(
        "SET-18",
        "attempts on the hosted page",
        after=in_orders(lambda order: order.update(transactions=order["transactions"][-1:])),
    ),
    "a token is read once": Deviation("CARD-20", "one-click", after=_show_tokens_once()),
    "a failed first payment has a token": Deviation(
        "CARD-20", "a failed first recurring payment", after=in_attempts(_store_failed_card)
    ),
    "a charset is refused": Deviation(
        "END-01",
        "paths and bodies",
        after=_refuse_charset,
        words="POST /v1/orders/ Content-Type: application/json; charset=utf-8",
    ),
    "the first amount is charged": Deviation(
        "SET-52",
        "a changed order, paid",
        after=in_orders(
            lambda order: [put(amount=1000)(each) for each in order["transactions"] if each["amount"] == 1250]
        ),
    ),
    "one cent too much is captured": Deviation(
        "SET-47",
        f"{AUTHORIZATION}, captured by amount",
        after=in_orders(lambda order: _count_one_cent_more(order.get("amount_details", {}))),
    ),
    "years of cards have two digits": Deviation(
        "CARD-15", "card challenge, pay", after=change_text(r'("card_expiry": "\d\d)\d\d', r"\1")
    ),
    "repeated requests create again": Deviation(
        "SET-71",
        before=lambda x: x.options["headers"].pop("Idempotency-Key", None),
        words="id is <id of step 3",
    ),
    "lines are in reverse order": Deviation(
        "ORD-16",
        "a whole order",
        after=in_orders(lambda order: order["order_lines"].reverse()),
        words="order_lines is ['post Postage', 'socks Socks'], expected ['socks Socks', 'post Postage']",
    ),
    "errors have no text": Deviation(
        "SET-03", "several problems", after=lambda x: x.error and x.error.pop("value"), words="and no text"
    ),
    "errors have a text as their status": Deviation(
        "SET-03",
        "several problems",
        after=lambda x: x.error and x.error.update(status=str(x.error["status"])),
        words="answered an error report with the status '400'",
    ),
    "captures answer an empty object": Deviation(
        "END-11",
        "captured with an empty body",
        after=lambda x: "/captures/" in x.path and not x.error and x.data.clear(),
        words="captures/: answered [], expected ['",
    ),
    "currencies are in lower case": Deviation("SET-54", "lists", after=change_text('"EUR"', '"eur"')),
    "unknown orders are found first": Deviation(
        "SET-08", after=_find_no_order_first, words="answered 404 NotFound, expected 400 ValidationError"
    ),
}
