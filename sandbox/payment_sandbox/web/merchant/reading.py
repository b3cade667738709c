"""Parsing of merchant requests: unknown keys are ignored and reported, or refused by project setting."""

from collections.abc import Collection, Sequence
from typing import Any, Final
from urllib.parse import quote

from flask import Response

from payment_sandbox.forms import Form, load, unknown_keys
from payment_sandbox.forms.base import UnknownKey
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.orders.refusals import OWN_NUMBER, READ_ONLY, VIOLATIONS_MAX, Invalid, Violation
from payment_sandbox.web.answers.order_tables import LINE_ID, ORDER, OrderForm
from payment_sandbox.web.answers.tables import CREATE
from payment_sandbox.web.answers.transaction_tables import TRANSACTION
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call

IGNORED_HEADER: Final = "Sandbox-Ignored-Fields"
WARNINGS_HEADER: Final = "Sandbox-Warnings"
NUMBERED: Final = Pattern(r"\[[0-9]{1,4}\]\Z")  # PHP's http_build_query numbers the items of a list
HEADER_LENGTH_MAX: Final = 4000
NAME_LENGTH_MAX: Final = 100  # the characters shown of a query parameter's name

NAMES_ELSEWHERE: Final = {
    **dict.fromkeys(("order_id", "order_number", "orderId", "orderNumber", "reference"), "merchant_order_id"),
    **dict.fromkeys(("cents", "amount_cents", "amountInCents", "total", "value"), "amount"),
    **dict.fromkeys(("metadata", "meta", "custom", "additionalData"), "extra"),
    **dict.fromkeys(("webhookUrl", "notification_url", "notificationUrl", "callback_url"), "webhook_url"),
    **dict.fromkeys(("returnUrl", "redirect_url", "redirectUrl", "success_url"), "return_url"),
    **dict.fromkeys(("cancel_url", "cancelUrl", "error_url", "failureUrl"), "failure_url"),
    **dict.fromkeys(("lines", "line_items", "lineItems", "items", "orderLines"), "order_lines"),
    **dict.fromkeys(("method", "paymentMethod", "payment_method_type"), "payment_method"),
    **dict.fromkeys(("captureMode", "capture_method", "capture"), "capture_mode"),
    **dict.fromkeys(("sku", "line_id", "reference_id", "productCode"), "merchant_order_line_id"),
    **dict.fromkeys(("unit_price", "unitPrice", "price"), "amount"),
    **dict.fromkeys(("vat", "vatRate", "tax_rate", "taxRate"), "vat_percentage"),
    **dict.fromkeys(("email", "emailAddress"), "email_address"),
    **dict.fromkeys(("firstName", "given_name", "givenName"), "first_name"),
    **dict.fromkeys(("lastName", "family_name", "familyName", "surname"), "last_name"),
    **dict.fromkeys(("date_of_birth", "dateOfBirth", "birthday"), "birthdate"),
    **dict.fromkeys(("zip", "zip_code", "postcode", "postalCode"), "postal_code"),
    **dict.fromkeys(("phone", "phone_number", "phoneNumber"), "phone_numbers"),
}
"""The names of fields in other payment APIs."""
READ_ONLY_PATHS: Final = {
    *ORDER.read_only_fields(CREATE),
    *(f"transactions[0].{name}" for name in TRANSACTION.read_only_fields(CREATE)),
}


def read_valid_fields(
    call: Call, form: Form, *, empty_is: Any = None, also_known: Collection[str] = ()
) -> tuple[dict[str, Any], list[Violation]]:
    """Read the body; return its valid fields and all violations.

    ``also_known`` are allowed keys that the form does not read.
    """
    body = json_body(call, empty_is=empty_is)
    if call.project.settings.numeric_ids == "text":
        body = call.body = _with_text_ids(body)
    data, violations = load(form, body)
    unknown = unknown_keys(form, body)
    if also_known:
        unknown = [key for key in unknown if key.path not in also_known]
    return data, [*violations, *handle_unknown(call, unknown[:VIOLATIONS_MAX])]


def _with_text_ids(body: Any) -> Any:
    """Convert numbers as ids of an order and its lines to text (A73)."""
    if not isinstance(body, dict):
        return body
    lines = body.get("order_lines")
    named = {"order_lines": [_text_id(line, LINE_ID) for line in lines]} if isinstance(lines, list) else {}
    return {**_text_id(body, "merchant_order_id"), **named}


def _text_id(record: Any, name: str) -> Any:
    number = record.get(name) if isinstance(record, dict) else None
    return {**record, name: str(number)} if type(number) is int else record


def handle_unknown(call: Call, unknown: Sequence[UnknownKey]) -> list[Violation]:
    """Note ignored keys (SET-12), or return violations if the settings refuse them (SET-13)."""
    if not unknown:
        return []
    if call.project.settings.unknown_fields == "reject":
        return [_violation_of(call, key) for key in unknown]
    note_ignored(call, *(key.path for key in unknown))
    call.notes.unknown = (*call.notes.unknown, *((key.path, key.meant(NAMES_ELSEWHERE)) for key in unknown))
    return []


def _violation_of(call: Call, key: UnknownKey) -> Violation:
    """Return the violation of an unknown key, which in a creation may be one that only answers have."""
    if key.path in READ_ONLY_PATHS and call.facts is not None and call.facts.reads is OrderForm:
        return Violation(key.path, f"is {READ_ONLY}{OWN_NUMBER if key.path == 'id' else ''}")
    return key.violation(key.meant(NAMES_ELSEWHERE))


def query_values(call: Call, name: str) -> list[str]:
    """Return the values of a repeated query parameter, which may be numbered: ``fields[0]`` (A65)."""
    if not call.request.environ.get("QUERY_STRING"):
        return []
    return [value for key, value in call.request.args.items(multi=True) if NUMBERED.sub("[]", key) == name]


def note_unknown_query(call: Call) -> None:
    """Note unknown query parameters as ``?name``, like unknown keys of a body.

    Raises:
        Invalid: the project's settings refuse unknown keys.
    """
    sent = call.request.args
    form = call.facts.query if call.facts is not None else None
    known = form().load_fields if form is not None else {}
    names = [key[:NAME_LENGTH_MAX] for key in sent if NUMBERED.sub("[]", key) not in known][:VIOLATIONS_MAX]
    unknown = [UnknownKey(f"?{name}", name, known) for name in names]
    if unknown and call.project.settings.unknown_fields == "reject":
        raise Invalid([key.violation(key.meant(NAMES_ELSEWHERE)) for key in unknown])
    note_ignored(call, *(unknown_key.path for unknown_key in unknown))
    _note_unknown(call, unknown)


def _note_unknown(call: Call, unknown: Sequence[UnknownKey]) -> None:
    if unknown:
        call.notes.unknown = (
            *call.notes.unknown,
            *((key.path, key.meant(NAMES_ELSEWHERE)) for key in unknown),
        )


def read_body(call: Call, form: Form, *, empty_is: Any = None) -> dict[str, Any]:
    """Read the body, and refuse it if any field is invalid.

    Raises:
        Invalid: lists all violations.
    """
    data, violations = read_valid_fields(call, form, empty_is=empty_is)
    if violations:
        raise Invalid(violations)
    return data


def note_ignored(call: Call, *paths: str) -> None:
    """Record ignored keys for the header and the journal (SET-12)."""
    if paths:
        call.notes.ignored = (*call.notes.ignored, *paths)


def warn(call: Call, sentence: str) -> None:
    """Record a warning for the header (SET-31)."""
    call.notes.warnings = (*call.notes.warnings, sentence)


def add_note_headers(call: Call, response: Response) -> None:
    """Add the headers for ignored keys, each with a suggestion, and for warnings."""
    notes = call.notes
    if notes.ignored:
        nearest = dict(notes.unknown)
        paths = call.masking.mask_record(notes.ignored)
        response.headers[IGNORED_HEADER] = _join_header(
            _format_item(path, nearest.get(sent)) for path, sent in zip(paths, notes.ignored, strict=True)
        )
    if notes.warnings:
        response.headers[WARNINGS_HEADER] = _join_header(call.masking.mask_record(notes.warnings))


def _format_item(path: str, nearest: str | None) -> str:
    """Format an item of a header list, with the suggestion as a parameter (RFC 9651)."""
    return quote(path, safe="[]._-~/?") + (f";nearest={nearest}" if nearest else "")


def _join_header(items: Any) -> str:
    shown, length = [], 0
    for item in items:
        length += len(item) + 2
        if length > HEADER_LENGTH_MAX:
            shown.append("...")
            break
        shown.append(item)
    return ", ".join(shown)
