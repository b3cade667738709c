"""Pages escape foreign text and refuse forms that they did not offer."""

import pytest
import requests

from tests.support.driver import LINES, NOBODY, Sandbox
from tests.support.payer import Payer, order_page, payment_page, placed


@pytest.mark.parametrize("token", ["", "0" * 64, "é", "of another order"])
def test_a_post_without_the_page_s_token_does_nothing(live: Sandbox, payer: Payer, token: str) -> None:
    """Payments and orders refuse a wrong token, such as that of another order, and the page shows a notice."""
    order = placed(live, "wallet-web")
    if token == "of another order":
        token = payer.open(payment_page(placed(live, "wallet-web"))).form_with("pay").fields["token"]
    page = payer.press(payer.open(payment_page(order)), "pay", token=token)
    assert "notice" in page.ids
    assert live.status(order) == ("processing", "processing")
    hosted = live.place()
    page = payer.press(payer.open(order_page(hosted)), "wallet-web", token=token)
    assert "notice" in page.ids
    assert live.read(hosted)["transactions"] == []


def test_a_page_of_another_site_cannot_post(live: Sandbox, payer: Payer) -> None:
    """A foreign Origin or Host is refused even with a valid token; the page names the option that allows a host."""
    order = placed(live, "wallet-web")
    form = payer.open(payment_page(order)).form_with("pay")
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"}):
        answer = requests.post(
            form.action,
            data={**form.fields, "action": "pay"},
            headers=headers,
            allow_redirects=False,
        )
        assert answer.status_code == 403
        assert ("--allow-host evil.example" in answer.text) == ("Host" in headers)
    assert live.status(order) == ("processing", "processing")


def test_an_action_without_a_button_is_ignored(live: Sandbox, payer: Payer) -> None:
    """A posted action without a button is ignored; a form of more than 1 MiB is refused unread."""
    order = placed(live, "wallet-web")
    form = payer.open(payment_page(order)).form_with("pay")
    for action in ("credit", "approve", "visit", "settle", "", "nonsense"):
        requests.post(form.action, data={**form.fields, "action": action})
    answer = requests.post(form.action, data={**form.fields, "x": "x" * (1 << 20)})
    assert (answer.status_code, answer.json()["error"]["status"]) == (413, 413)
    assert live.status(order) == ("processing", "processing")


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}{0.__class__}"


def test_foreign_text_is_escaped(live: Sandbox) -> None:
    """Pages escape descriptions, names, lines, URLs and the payer's input."""
    live.settings(name=HOSTILE)
    line = {**LINES[0], "name": HOSTILE, "amount": 1000, "quantity": 1}
    order = live.place(
        description=HOSTILE,
        merchant_order_id=HOSTILE,
        order_lines=[line],
        return_url="http://shop.example/?q='><script>alert(3)</script>".replace("'>", "%27%3E"),
    )
    payer = Payer(live)
    pages = [payer.open(order_page(order)), payer.press(payer.open(order_page(order)), "credit-card")]
    pages.append(payer.press(pages[-1], "pay", number="1", holder=HOSTILE))
    pages.append(payer.open(f"{order_page(order)}?notice={HOSTILE}&language={HOSTILE}"))
    for page in pages:
        assert "<script>alert" not in page.answer.text
        assert "<img src=x" not in page.answer.text
        assert "49}" not in page.text


def test_pages_carry_the_headers_that_protect_them(live: Sandbox, payer: Payer) -> None:
    """Headers forbid inline scripts, frames, content sniffing and caching."""
    order = placed(live, "credit-card")
    for address in (
        payment_page(order),
        f"{payment_page(order)}left/",
        payment_page(order).replace(order["id"], NOBODY),
    ):
        headers = payer.open(address).answer.headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
