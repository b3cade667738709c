"""Servers that differ on purpose: changes of calls and answers, with the rules that must be found."""

import json
import re
from typing import Any, NamedTuple

from payment_sandbox.methods import METHOD_NAMES
from tests.verification.exchanges import Exchange, Way


class Different(NamedTuple):
    """A way in which a server differs: the rules that must be found, and the settings that copy it."""

    rules: str
    settings: dict[str, Any] = {}
    before: Way | None = None
    after: Way | None = None


def _accepted(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order else ():
        if attempt.get("is_capturable") and attempt["payment_method"] == "credit-card":
            x.data["status"] = attempt["status"] = "accepted"


def _schemes(x: Exchange) -> None:
    text = json.dumps(x.data)
    x.data = json.loads(re.sub(r'"(order_url|payment_url)": "', r'"\1": "http://', text))


def _slow_refunds(x: Exchange) -> None:
    if isinstance(x.data, dict) and "refund_of_order_id" in x.data:
        x.data["status"] = "processing"


def _unprocessable(x: Exchange) -> None:
    if x.error.get("type") == "ValidationError":
        x.reply(422)
        x.error["type"] = "InvalidRequest"


def _own_words(x: Exchange) -> None:
    if x.error.get("value", "").startswith("currency"):
        x.error["value"] = "Only euros, please"


def _hidden(x: Exchange) -> None:
    if x.error.get("type") == "NotFound":
        x.reply(403, type="Forbidden", value="This is not yours")


def _strict(x: Exchange) -> None:
    if isinstance(x.sent, dict) and "amuont" in x.sent:
        x.reply(400, type="ValidationError", value="amuont is not a known key")


def _reduced(x: Exchange) -> None:
    if x.is_order and "customer" in x.data:
        x.data["customer"] = {name: x.data["customer"].get(name) for name in ("country", "ip_address")}


def _plain_success(x: Exchange) -> None:
    assert x.answer is not None
    x.answer.status_code = 200 if x.answer.status_code == 201 else x.answer.status_code


def _too_much(x: Exchange) -> None:
    if x.error.get("type") == "CaptureExceedsRemainder":
        x.reply(400, type="AmountTooHigh", value="The amount is too high")


def _quarter(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order else ():
        if attempt["payment_method"] == "credit-card" and attempt["expiration_period"] == "PT30M":
            attempt["expiration_period"] = "PT15M"


def _numbers(x: Exchange) -> None:
    for line in x.data.get("order_line_details", ()) if x.is_order else ():
        line.update(amount=int(line["amount"]), quantity=int(line["quantity"]))


def _no_tags(x: Exchange) -> None:
    assert x.answer is not None
    x.answer.headers.pop("ETag", None)


def _lenient(x: Exchange) -> None:
    if isinstance(x.sent.get("amount"), str):
        x.sent["amount"] = int(x.sent["amount"])


def _new_transfers(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order and x.method == "POST" else ():
        if attempt["payment_method"] == "bank-transfer":
            x.data["status"] = attempt["status"] = "new"


def _qr_cents(x: Exchange) -> None:
    if isinstance(x.data, dict) and "qr_url" in x.data:
        x.data["amount"] = round(float(x.data["amount"]) * 100)


def _clamped(x: Exchange) -> None:
    if isinstance(x.sent.get("size"), int):
        x.sent["size"] = min(max(x.sent["size"], 100), 2000)


def _no_cancelling(x: Exchange) -> None:
    if x.method == "DELETE":
        x.reply(405, type="MethodNotAllowed", value="no")


def _no_challenge(x: Exchange) -> None:
    assert x.answer is not None
    x.answer.headers.pop("WWW-Authenticate", None)


def _zulu(x: Exchange) -> None:
    x.data = json.loads(json.dumps(x.data).replace("+00:00", "Z"))


def _no_list(x: Exchange) -> None:
    if x.error:
        del x.error["violations"]


def _no_one_click(x: Exchange) -> None:
    details = str((x.sent or {}).get("transactions")) if isinstance(x.sent, dict) else ""
    if "one_click_type" in details and not x.error:
        x.reply(400, type="ValidationError", value="not enabled")


def _slashes(x: Exchange) -> None:
    if not x.path.partition("?")[0].endswith("/"):
        x.reply(301)
        x.data = None


def _few_methods(x: Exchange) -> None:
    wallet = "wallet-qr"
    if isinstance(x.data, dict) and wallet in x.data.get("payment_methods", ()) and "currencies" in x.path:
        del x.data["payment_methods"][wallet]
    if isinstance(x.sent, dict) and wallet in str(x.sent.get("transactions")) and not x.error:
        x.reply(400, type="ValidationError", value="not enabled")


def _nothing_capturable(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order else ():
        del attempt["is_capturable"]


def _deletes_captured(x: Exchange) -> None:
    """A paid order can be cancelled; and a stale cancellation is 412, as everywhere."""
    if x.method == "DELETE" and x.error.get("type") == "OrderNotCancellable":
        x.reply(200)
        x.data = {"id": x.path.split("/")[3], "status": "cancelled"}


def _pending_refunds(x: Exchange) -> None:
    if isinstance(x.data, dict) and "refund_of_order_id" in x.data:
        x.data["status"] = "pending"


def _bad_json(x: Exchange) -> None:
    if x.error.get("type") == "BadRequest" and x.sent is None:
        x.reply(422)


def _media_types(x: Exchange) -> None:
    if x.error.get("status") == 415:
        x.reply(400)


def _large(x: Exchange) -> None:
    if x.error.get("status") == 413:
        x.reply(400)


def _cut_descriptions(x: Exchange) -> None:
    if len(str(x.sent.get("description"))) in range(256, 10_000):
        x.sent["description"] = x.sent["description"][:255]


def _only_in_creations(*names: str) -> Way:
    """A way to forget what was sent: later reads are without it."""

    def forget(x: Exchange) -> None:
        if x.is_order and x.method == "GET":
            for name in names:
                x.data.pop(name, None)

    return forget


def _plain_text_read(x: Exchange) -> None:
    if x.is_order and x.method == "GET" and "description" in x.data:
        x.data["description"] = x.data["description"].encode("ascii", "replace").decode()


def _old_customers(x: Exchange) -> None:
    if x.method == "PUT":
        x.sent.pop("customer", None)


def _forgets_notes(x: Exchange) -> None:
    if x.is_order and x.method == "GET" and isinstance(x.data.get("extra"), dict):
        x.data["extra"].pop("note", None)


def _new_field(x: Exchange) -> None:
    if x.is_order:
        x.data["risk_score"] = 17


def _new_attempt_field(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order else ():
        attempt["acquirer"] = "north"


LEAN = tuple(
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


def _lean_refunds(x: Exchange) -> None:
    """Refunds have what they must have, and no more."""
    if isinstance(x.data, dict) and "refund_of_order_id" in x.data:
        x.data = {name: x.data[name] for name in LEAN if name in x.data}


def _another_field_of_refunds(x: Exchange) -> None:
    if isinstance(x.data, dict) and "refund_of_order_id" in x.data:
        x.data["bank_reference"] = "R-1"


def _empty_values(x: Exchange) -> None:
    """What was not sent is answered as nothing."""
    lists: dict[str, Any] = {"order_lines": [], "payment_methods": []}
    empty = {**lists, "extra": {}, "return_url": "", "reason": None}
    if x.is_order:
        x.data = {**empty, **x.data, "refund_of_order_id": x.data.get("refund_of_order_id")}


def _no_flags(x: Exchange) -> None:
    if x.is_order:
        x.data.pop("flags", None)


def _phones_as_text(x: Exchange) -> None:
    customer = x.data.get("customer", {}) if x.is_order else {}
    if "phone_numbers" in customer:
        customer["phone_numbers"] = ", ".join(customer["phone_numbers"])


def _one_id_once() -> Way:
    """A way to refuse a merchant_order_id that another order has."""
    seen: set[str] = set()

    def once(x: Exchange) -> None:
        own_id = x.sent.get("merchant_order_id") if isinstance(x.sent, dict) else None
        if x.method == "POST" and x.path == "/v1/orders/" and isinstance(own_id, str) and not x.error:
            if own_id in seen:
                x.reply(400, type="ValidationError", value="merchant_order_id is known already")
            seen.add(own_id)

    return once


def _few_lines(x: Exchange) -> None:
    if isinstance(x.sent, dict) and len(x.sent.get("order_lines") or ()) > 50 and not x.error:
        x.reply(400, type="ValidationError", value="too many lines")


def _any_case(x: Exchange) -> None:
    attempts = x.sent.get("transactions")
    for attempt in attempts if isinstance(attempts, list) else ():
        if isinstance(attempt, dict) and isinstance(attempt.get("payment_method"), str):
            attempt["payment_method"] = attempt["payment_method"].lower()


def _always_capturable(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order and x.method == "GET" else ():
        if attempt.get("is_fully_captured"):
            attempt["is_capturable"] = True


def _transfers_stay(x: Exchange) -> None:
    """A transfer cannot be cancelled while it is processing."""
    if x.method == "DELETE" and "bank-transfer" in str(x.data):
        x.reply(409, type="OrderNotCancellable", value="a transfer is on its way")


def _old_addresses(x: Exchange) -> None:
    if x.method == "PUT":
        x.sent.pop("return_url", None)


def _one_tag(x: Exchange) -> None:
    assert x.answer is not None
    if "ETag" in x.answer.headers:
        x.answer.headers["ETag"] = '"always"'


def _refuses(name: str, *values: Any) -> Way:
    """A way to refuse a field with one of some values, wherever it is sent."""
    texts = [json.dumps({name: value})[1:-1] for value in values]

    def refuse(x: Exchange) -> None:
        if x.method == "POST" and not x.error and any(text in json.dumps(x.sent) for text in texts):
            x.reply(400, type="ValidationError", value=f"{name} cannot be that")

    return refuse


def _lower_series(x: Exchange) -> None:
    """Charge less than the first payment of a series."""
    if '"recurring_type": "recurring"' in json.dumps(x.sent) and isinstance(x.sent.get("amount"), int):
        x.sent["amount"] = max(x.sent["amount"], 1000)


def _late_amounts(x: Exchange) -> None:
    """An amount that can no longer be changed is taken, and ignored."""
    if x.method == "PUT" and x.error.get("type") == "OrderNotUpdatable":
        x.reply(200)
        x.data = {"id": x.path.split("/")[3]}


def _silent_cancellations(x: Exchange) -> None:
    if x.method == "DELETE" and not x.error:
        x.reply(204)
        x.data = None


def _cut_at(length: int) -> Way:
    """A way to keep no more of a description."""

    def cut(x: Exchange) -> None:
        if isinstance(x.sent.get("description"), str) and len(x.sent["description"]) < 10_000:
            x.sent["description"] = x.sent["description"][:length]

    return cut


def _first_events(x: Exchange) -> None:
    for attempt in x.data["transactions"] if x.is_order else ():
        attempt["events"] = attempt["events"][:1]


def _unseen_visits(x: Exchange) -> None:
    """A visit of a card's page changes nothing."""
    for attempt in x.data["transactions"] if x.is_order else ():
        if attempt["payment_method"] == "credit-card" and attempt["status"] == "processing":
            attempt["status"] = x.data["status"] = "new"


def _unmoved_times(x: Exchange) -> None:
    if x.is_order:
        x.data["modified"] = x.data["created"]


def _long_countries(x: Exchange) -> None:
    if isinstance(x.sent.get("customer"), dict) and len(str(x.sent["customer"].get("country"))) == 3:
        x.sent["customer"]["country"] = "NL"


def _compact_dates(x: Exchange) -> None:
    if isinstance(x.sent.get("customer"), dict) and x.sent["customer"].get("birthdate") == "19900131":
        x.sent["customer"]["birthdate"] = "1990-01-31"


def _no_offsets(x: Exchange) -> None:
    if isinstance(x.sent.get("expiration"), str):
        x.sent["expiration"] = x.sent["expiration"].replace("+02:00", "+00:00")


def _single_tags() -> Way:
    """Understand only one strong entity tag."""
    reads: dict[str, Any] = {}

    def answer(x: Exchange) -> None:
        assert x.answer is not None
        tags = (x.options.get("headers") or {}).get("If-None-Match", "")
        if x.is_order:
            reads[x.path] = x.data
        elif x.answer.status_code == 304 and ("," in tags or tags.startswith("W/")):
            x.answer.status_code, x.data = 200, reads[x.path]
            x.answer.headers["Content-Type"] = "application/json"

    return answer


def _nothing_allowed(x: Exchange) -> None:
    for violation in x.error.get("violations", ()):
        violation.pop("allowed", None)


def _any_page(x: Exchange) -> None:
    """A page of any method is made without what the method needs."""
    needed = {"pay-later-a": ["order_lines"], "invoice-later-b": ["order_lines", "customer"]}
    listed = x.sent.get("payment_methods") if x.method == "POST" else None
    method = str(listed[0]) if isinstance(listed, list) and len(listed) == 1 else ""
    if any(name not in x.sent for name in needed.get(method, ())):
        del x.sent["payment_methods"]


def _names_few_ignored(*hidden: str) -> Way:
    """Leave some ignored keys out of the header."""

    def leave_out(x: Exchange) -> None:
        assert x.answer is not None
        names = x.answer.headers.get("Sandbox-Ignored-Fields", "").split(", ")
        shown = [name for name in names if not any(each in name for each in hidden)]
        if shown != names:
            x.answer.headers["Sandbox-Ignored-Fields"] = ", ".join(shown)

    return leave_out


def _last_block(x: Exchange) -> None:
    if x.is_order and x.path.count("fields[]=") > 1:
        del x.data["amount_details"]


def _no_passwords(x: Exchange) -> None:
    assert x.answer is not None
    auth = x.options.get("auth")
    if isinstance(auth, tuple) and auth[1]:
        x.reply(401, type="Unauthorized", value="no password, please")
        x.answer.headers["WWW-Authenticate"] = "Basic"


def _refunds_any_invoice(x: Exchange) -> None:
    """Take a refund of an invoice by amount."""
    if (
        x.path.endswith("/refunds/")
        and "order_lines" in str(x.error.get("violations"))
        and "amount" in (x.sent or {})
    ):
        x.reply(201)
        x.data = {"id": "r", "status": "completed"}


DIFFERENT: dict[str, Different] = {
    "countries may have three letters": Different("CUS-09", {}, before=_long_countries),
    "dates need no dashes": Different("CUS-03", {}, before=_compact_dates),
    "offsets do not count": Different("QR-16", {}, before=_no_offsets),
    "lists of tags do not match": Different("SET-34", {}, after=_single_tags()),
    "violations do not say what is allowed": Different("SET-05", {}, after=_nothing_allowed),
    "pages need no lines": Different("INV-01 INV-02 ORD-13 PLA-01", {}, before=_any_page),
    "inner keys are ignored silently": Different("SET-12", {}, after=_names_few_ignored("colour", "tip")),
    "a status is ignored silently": Different("SET-53", {}, after=_names_few_ignored("status")),
    "only the last block counts": Different("END-06", {}, after=_last_block),
    "passwords are refused": Different("SET-02", {}, after=_no_passwords),
    "invoices are refunded by amount": Different("END-09", {}, after=_refunds_any_invoice),
    "only the first event stays": Different("TEV-01", {}, after=_first_events),
    "visits of cards change nothing": Different("GEN-03 STA-04 STA-12", {}, after=_unseen_visits),
    "modified never moves": Different("ORD-19", {}, after=_unmoved_times),
    "what is captured stays capturable": Different("SET-27", {}, after=_always_capturable),
    "transfers cannot be cancelled": Different("SET-50", {}, after=_transfers_stay),
    "return addresses cannot be changed": Different("SET-51", {}, before=_old_addresses),
    "the ETag never changes": Different("SET-32 SET-34", {}, after=_one_tag),
    "the largest QR size is refused": Different("LIM-03 QR-20", {}, after=_refuses("size", 2000)),
    "the smallest QR size is refused": Different("LIM-03 QR-20", {}, after=_refuses("size", 100)),
    "a QR bound of one cent less is refused": Different(
        "LIM-05 QR-09", {}, after=_refuses("amount_min", 999)
    ),
    "a locale is refused": Different("CUS-11", {}, after=_refuses("locale", "fr-BE")),
    "a type of lines is refused": Different("LINE-01", {}, after=_refuses("type", "store_credit")),
    "a series may charge less": Different("LIM-07 SET-64", {}, before=_lower_series),
    "amounts are taken after a visit": Different("SET-52", {}, after=_late_amounts),
    "lines are forgotten": Different("END-03 ORD-16", {}, after=_only_in_creations("order_lines")),
    "the client is forgotten": Different("END-03 ORD-18", {}, after=_only_in_creations("client")),
    "cancellations are answered with nothing": Different(
        "SET-06 SET-07 SET-50", {}, after=_silent_cancellations
    ),
    "descriptions are cut soon": Different("ORD-06 QR-11", {}, before=_cut_at(14)),
    "descriptions are cut": Different("ORD-06 QR-11", {}, before=_cut_descriptions),
    "descriptions are read without accents": Different("ORD-06", {}, after=_plain_text_read),
    "return addresses are forgotten": Different("END-03 ORD-08", {}, after=_only_in_creations("return_url")),
    "webhook addresses are forgotten": Different(
        "END-03 ORD-10", {}, after=_only_in_creations("webhook_url")
    ),
    "extra is forgotten in part": Different("SET-14", {}, after=_forgets_notes),
    "customers cannot be changed": Different("SET-51", {}, before=_old_customers),
    "orders have another field": Different("END-02", {}, after=_new_field),
    "transactions have another field": Different("ORD-17", {}, after=_new_attempt_field),
    "refunds have no more than they must": Different("", {}, after=_lean_refunds),
    "refunds have another field": Different("SET-48", {}, after=_another_field_of_refunds),
    "nothing is answered as empty values": Different("", {}, after=_empty_values),
    "orders have no flags": Different("SET-26 SET-48", {}, after=_no_flags),
    "phone numbers are a text": Different("CUS-05 SET-53", {}, after=_phones_as_text),
    "orders have ids of their own": Different("ORD-07", {}, after=_one_id_once()),
    "orders have few lines": Different("ORD-16", {}, after=_few_lines),
    "methods have names in any case": Different("TRQ-02", {}, before=_any_case),
    "captured orders can be deleted": Different("SET-50", {}, after=_deletes_captured),
    "refunds are pending": Different("SET-48", {}, after=_pending_refunds),
    "bad JSON is 422": Different("SET-08", {"errors": {"BadRequest": {"status": 422}}}, after=_bad_json),
    "other media types are 400": Different(
        "SET-09", {"errors": {"UnsupportedMediaType": {"status": 400}}}, after=_media_types
    ),
    "large bodies are 400": Different(
        "SET-09", {"errors": {"RequestEntityTooLarge": {"status": 400}}}, after=_large
    ),
    "an authorized card is accepted": Different("SET-38", {"authorized_status": "accepted"}, after=_accepted),
    "addresses have a scheme": Different("ORD-24 TX-12", {"absolute_urls": True}, after=_schemes),
    "a refund is processing": Different("SET-48", {"refund_status": "processing"}, after=_slow_refunds),
    "invalid requests are 422": Different(
        "SET-04 SET-08",
        {"errors": {"ValidationError": {"status": 422, "type": "InvalidRequest"}}},
        after=_unprocessable,
    ),
    "the currency is refused in own words": Different(
        "",
        {"errors": {"ORD-03": {"value": "Only euros, please"}, "QR-10": {"value": "Only euros, please"}}},
        after=_own_words,
    ),
    "unknown orders are forbidden": Different(
        "SET-04 SET-08",
        {"errors": {"NotFound": {"status": 403, "type": "Forbidden", "value": "This is not yours"}}},
        after=_hidden,
    ),
    "unknown keys are refused": Different("SET-12", {"unknown_fields": "reject"}, after=_strict),
    "customers are reduced": Different("SET-25", {"reduced_customer": True}, after=_reduced),
    "creations are 200": Different("END-02 SET-07", {}, after=_plain_success),
    "a capture of too much is 400": Different(
        "SET-04",
        {
            "errors": {
                "CaptureExceedsRemainder": {
                    "status": 400,
                    "type": "AmountTooHigh",
                    "value": "The amount is too high",
                }
            }
        },
        after=_too_much,
    ),
    "cards expire after a quarter": Different("LIM-12 SET-65", {}, after=_quarter),
    "line details have numbers": Different("LDET-04", {}, after=_numbers),
    "orders have no ETag": Different("SET-32 SET-34", {}, after=_no_tags),
    "amounts may be strings": Different("LIM-02 LIM-05 ORD-05 QR-02", {}, before=_lenient),
    "transfers begin new": Different("STA-10", {}, after=_new_transfers),
    "QR amounts are cents": Different("QR-01", {}, after=_qr_cents),
    "QR sizes are clamped": Different("LIM-03 QR-20", {}, before=_clamped),
    "orders cannot be cancelled": Different(
        "SET-04 SET-33 SET-50",
        {"errors": {"OrderNotCancellable": {"status": 405, "type": "MethodNotAllowed", "value": "no"}}},
        after=_no_cancelling,
    ),
    "a 401 has no challenge": Different("SET-02", {}, after=_no_challenge),
    "times end in Z": Different("SET-19", {}, after=_zulu),
    "errors have no violations": Different("SET-05", {}, after=_no_list),
    "one-click is not enabled": Different("CARD-04", {"one_click_enabled": False}, after=_no_one_click),
    "paths need their slash": Different("SET-01", {}, after=_slashes),
    "a method is not enabled": Different(
        "WQR-02",
        {"payment_methods": [name for name in METHOD_NAMES if name != "wallet-qr"]},
        after=_few_methods,
    ),
    "nothing says what is capturable": Different("SET-27", {}, after=_nothing_capturable),
}
