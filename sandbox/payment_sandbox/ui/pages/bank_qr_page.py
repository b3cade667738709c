"""The page of a bank QR code, for payers who scan it without a banking app."""

import hmac
import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from io import BytesIO
from secrets import token_urlsafe
from typing import Final
from zlib import compress, crc32

from flask import Response, render_template, url_for

from payment_sandbox.extensions import segno
from payment_sandbox.operations.bank_qr import scan
from payment_sandbox.orders.amounts import Cents, parse_euros
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Invalid, QrAmountRefused, QrExpired, QrUsed
from payment_sandbox.projects.journal import VIA_PAGE
from payment_sandbox.projects.project import Project
from payment_sandbox.ui.pages.language import DEFAULT_TAG, LANGUAGE_NAMES, Language
from payment_sandbox.ui.pages.pages_hooks import FORM_FACTS, PAGE_METADATA
from payment_sandbox.ui.pages.payer_page import (
    TOKEN_FIELD,
    AttemptNotice,
    PayerPage,
    chosen_language,
    find_project,
)
from payment_sandbox.web.answers.page_urls import qr_page_url
from payment_sandbox.web.browsers import HTML, redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.routes import stated

QUIET_ZONE_MODULES: Final = 4  # the margin that decoders need
PNG_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
BLACK_AND_WHITE: Final = (1, 0, 0, 0, 0)  # one bit per pixel, greyscale, default methods


@lru_cache(maxsize=64)
def qr_png(content: str, size_pixels: int) -> bytes:
    """Render a square PNG, ``size_pixels`` wide, that decodes to ``content`` (QR-19, QR-26)."""
    code = _make_code(content, error="l", boost_error=False)
    # encoded as PNG by hand, because segno only writes multiples of the size of the code
    rows = list(_pixel_rows(code.matrix, size_pixels))
    row_bytes = (size_pixels + 7) // 8
    packed = {row: int(row.ljust(row_bytes * 8, "1"), 2).to_bytes(row_bytes) for row in set(rows)}
    data = b"".join(b"\0" + packed[row] for row in rows)
    header = struct.pack(">IIBBBBB", size_pixels, size_pixels, *BLACK_AND_WHITE)
    return PNG_SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", compress(data, 9)) + _chunk(b"IEND", b"")


@lru_cache(maxsize=64)
def qr_svg(content: str) -> str:
    """Render a square SVG, sharp at any size."""
    code = _make_code(content, error="m")
    out = BytesIO()
    code.save(out, kind="svg", border=QUIET_ZONE_MODULES, light="#ffffff", omitsize=True, xmldecl=False)
    return out.getvalue().decode()


def _make_code(content: str, *, error: str, boost_error: bool = True) -> "segno.QRCode":
    return segno.make(content, error=error, boost_error=boost_error, micro=False)


def _pixel_rows(matrix: Sequence[bytearray], size_pixels: int) -> Iterator[str]:
    """Yield the image row by row, one character per pixel: 1 is white. The code is centred.

    A module has a whole number of pixels: OpenCV reads few codes whose modules differ in width, or are grey.
    """
    modules = len(matrix)
    scale = max(1, size_pixels // (modules + 2 * QUIET_ZONE_MODULES))
    before = (size_pixels - modules * scale) // 2
    after = size_pixels - modules * scale - before
    yield from ["1" * size_pixels] * before
    for row in matrix:
        dots = "".join("0" * scale if module else "1" * scale for module in row)
        yield from ["1" * before + dots + "1" * after] * scale
    yield from ["1" * size_pixels] * after


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))


SHOWN_LENGTH_MAX: Final = 40
BAD_REQUEST: Final = 400


@stated(group="pages", media_type="image/png", errors=(404,))
def get_qr_image(call: Call, project_id: str, qr_id: str) -> Response:
    """Get the image of a QR request (QR-26)."""
    project = find_project(call, project_id)
    qr_request = project.epoch.find_qr_request(qr_id)
    return Response(qr_png(qr_page_url(project, qr_request), qr_request.size_pixels), mimetype="image/png")


@stated(**PAGE_METADATA)
def get_qr_page(call: Call, project_id: str, qr_id: str) -> Response:
    """Show the page where the payer chooses a bank and, if changeable, the amount (QR-27)."""
    project = find_project(call, project_id)
    return _show_page(call, project, project.epoch.find_qr_request(qr_id))


@stated(**FORM_FACTS)
def post_qr_page(call: Call, project_id: str, qr_id: str) -> Response:
    """Create the order, once per form, and redirect to the bank; or show the page with the error."""
    project = find_project(call, project_id)
    qr_request = project.epoch.find_qr_request(qr_id)
    form_id, _, signature = call.request.form.get(TOKEN_FIELD, "").partition(".")
    if not hmac.compare_digest(signature.encode(), _sign(call, qr_request, form_id).encode()):
        return redirect(url_for("pages.get_qr_page", project_id=project_id, qr_id=qr_id, notice="stale"))
    amount_cents: Cents | None = None
    try:
        if qr_request.amount_changeable and "amount" in call.request.form:
            amount_cents = parse_euros(call.request.form["amount"].strip())
        call.hold_webhooks()
        order = scan(
            project, qr_request.id, amount_cents, call.request.form.get("issuer_id"), form_id, VIA_PAGE
        )
    except (QrAmountRefused, ValueError):
        return _show_page(call, project, qr_request, "amount")
    except Invalid as invalid:
        if invalid.violations[0].path != "issuer_id":
            raise  # the merchant no longer accepts the method
        return _show_page(call, project, qr_request, "bank")
    except (QrExpired, QrUsed):
        return _show_page(call, project, project.epoch.find_qr_request(qr_request.id))
    return redirect(
        PayerPage(call, project, order, order.transactions[0], chosen_language(call, order)).next_url
    )


def _sign(call: Call, qr_request: QrRequest, form_id: str) -> str:
    return hmac.new(call.site.forgery_secret, f"{qr_request.id}/{form_id}".encode(), "sha256").hexdigest()


def _open_payment_url(call: Call, project: Project, qr_request: QrRequest, language: Language) -> str | None:
    """Return the URL of the open payment created by scanning a one-off code."""
    for order in project.epoch.store.orders_newest_first():
        if order.bankqr_id == qr_request.id:
            page = PayerPage(call, project, order, order.transactions[0], language)
            return page.next_url if order.is_open else None
    return None


def _show_page(call: Call, project: Project, qr_request: QrRequest, error: str | None = None) -> Response:
    language = chosen_language(call, None)
    form_id = token_urlsafe(16)
    closed = "used" if qr_request.one_off and qr_request.scans else None
    if project.now() >= qr_request.expires_at:
        closed = "expired"
    low, high_cents = language.amount(qr_request.amount_min_cents or 1), qr_request.amount_max_cents
    bounds = language.say("qr_at_least", low=low)
    if high_cents is not None:
        bounds = language.say("qr_between", low=low, high=language.amount(high_cents))
    body = render_template(
        "qr.html",
        page=None,
        say=language.say,
        language=language,
        languages=LANGUAGE_NAMES,
        qr_request=qr_request,
        amount=language.amount(qr_request.amount_cents) if qr_request.amount_cents is not None else None,
        typed=call.request.form.get("amount", _format_input(qr_request.amount_cents, language))[
            :SHOWN_LENGTH_MAX
        ],
        notice=AttemptNotice(language.say("notice_stale"))
        if call.request.args.get("notice") == "stale"
        else None,
        bounds=bounds,
        issuers=project.settings.banks,
        merchant=project.settings.name or language.say("the_shop"),
        closed=closed,
        open_payment=_open_payment_url(call, project, qr_request, language) if closed == "used" else None,
        error=error,
        token=f"{form_id}.{_sign(call, qr_request, form_id)}",
        now=project.now(),
        is_running=project.epoch.state.clock.running,
        look="bank",
        panel=None,
    )
    return Response(body, status=BAD_REQUEST if error else 200, content_type=HTML)


def _format_input(amount_cents: Cents | None, language: Language) -> str:
    """Format an amount for an input field, with the language's decimal separator."""
    if amount_cents is None:
        return ""
    euros = f"{Decimal(amount_cents) / 100:.2f}"
    return euros if language.tag == DEFAULT_TAG else euros.replace(".", ",")
