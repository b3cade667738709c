"""A shop without books is checked by its pages and emails."""

from pathlib import Path

import pytest

from pytest_payment_sandbox.rehearsal.changes import parse_changed_step
from pytest_payment_sandbox.rehearsal.showing import (
    CustomerView,
    Emails,
    ShownPage,
    find_view_problems,
    normalize,
)
from tests.rehearsal.test_rehearsing import has_many_variations, rehearse_suite, rehearse_until

TWICE = [parse_changed_step("webhook:1:twice")]
FAILS = [parse_changed_step("action:1:fails")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Order 4711 of 3 May 2027, 10:15 am", "Order 12 of Monday, 31 Aug 2026 9:00 pm"),
        ("€ 1,295.00 paid", "€ 9.95 paid"),
        ("<p class='a1'>Thank  you</p>", "<div>Thank you</div>"),
        ("<script>var t = 'abc'</script>Sale S-1001", "Sale S-7"),
        ('{"id": "0b8f0f7e-3bb1-4a6f-9a57-1f6e0d3c8a11"}', '{"id": "9c8f0f7e-3bb1-4a6f-9a57-1f6e0d3c8a22"}'),
        ("code ZGFzIGlzdCBlaW4gbGFuZ2VyIFRleHQK-abcdef", "code 7"),
        ("2026-01-04T09:00:00.123456+00:00", "2027-11-30T23:59:59+01:00"),
    ],
)
def test_numbers_dates_and_tokens_are_normalized(one: str, other: str) -> None:
    """Numbers, dates, tokens and invisible parts of a page are normalized."""
    normalized = normalize(one).replace("Monday", "#")
    assert normalized.split()[0] == normalize(other).split()[0]
    assert set(normalize(one).replace(",", "").split()) == set(normalize(other).replace(",", "").split())


@pytest.mark.parametrize(("one", "other"), [("paid", "not paid"), ("May I help?", "I help?"), ("a", "b")])
def test_words_count(one: str, other: str) -> None:
    """Every word counts."""
    assert normalize(one) != normalize(other)


def shown_page(is_paid: bool | None, text: str | None) -> ShownPage:
    """Return a page of one order."""
    return ShownPage("/thanks", is_paid, text)


def test_a_page_must_tell_paid_from_unpaid() -> None:
    """A page that shows the text of a paid order to an unpaid customer is a problem."""
    before = CustomerView([shown_page(True, "thank you")])
    (wrong,) = find_view_problems(
        CustomerView([shown_page(False, "thank you")]), before, FAILS, is_same_money=False
    )
    assert wrong.kind == "shown-paid"
    assert wrong.sentence.endswith("shows the same text to a customer who has not paid: 'thank you'")
    for page in (shown_page(False, "pay now"), shown_page(None, "thank you"), shown_page(True, "thank you")):
        assert list(find_view_problems(CustomerView([page]), before, FAILS, is_same_money=False)) == []


def test_an_earlier_attempt_may_show_the_payment() -> None:
    """The page of an unpaid attempt may show that its purchase is paid."""
    tries = CustomerView([shown_page(False, "thank you"), shown_page(True, "thank you")])
    assert not list(find_view_problems(tries, tries, (), is_same_money=True))
    unpaid = CustomerView([shown_page(False, "thank you"), shown_page(False, "thank you")])
    assert list(find_view_problems(unpaid, tries, FAILS, is_same_money=False))


def test_a_harmless_change_must_not_alter_a_page() -> None:
    """A harmless change must not alter a page, unless money has moved or the page always varies."""
    before, now = CustomerView([shown_page(True, "thank you")]), CustomerView([shown_page(True, "we wait")])
    (wrong,) = find_view_problems(now, before, TWICE, is_same_money=True)
    assert wrong.sentence == "the page /thanks shows 'we wait' instead of 'thank you'"
    assert list(find_view_problems(now, before, TWICE, is_same_money=False)) == []
    assert list(find_view_problems(now, before, FAILS, is_same_money=True)) == []
    assert (
        list(find_view_problems(now, CustomerView([shown_page(True, None)]), TWICE, is_same_money=True)) == []
    )


def test_a_page_that_fails_is_a_finding_of_any_change() -> None:
    """A failing page is a problem unless it fails or is missing in the unchanged test."""
    fails = shown_page(False, None)._replace(error="status 500")
    before, now = CustomerView([shown_page(True, "thank you")]), CustomerView([fails])
    (wrong,) = find_view_problems(now, before, FAILS, is_same_money=False)
    assert (wrong.kind, wrong.sentence) == ("shown-error", "the page /thanks fails: status 500")
    assert [each.kind for each in find_view_problems(now, before, TWICE, is_same_money=True)] == [
        "shown-error"
    ]
    for known in (now, CustomerView()):
        assert list(find_view_problems(now, known, FAILS, is_same_money=False)) == []


def test_mails_are_counted() -> None:
    """Extra and missing emails are problems, and so is a receipt for an unpaid customer."""
    pages = [shown_page(True, "thank you")]
    before = CustomerView(pages, Emails(["basket", "paid"], 1))
    for texts, words in (
        (["basket", "paid", "paid"], "an extra copy of an email"),
        (["basket"], "does not get the email"),
    ):
        (wrong,) = find_view_problems(
            CustomerView(pages, Emails(texts, 1)), before, TWICE, is_same_money=True
        )
        assert (wrong.kind, words in wrong.sentence) == ("mailed-differently", True)
    unpaid = CustomerView([shown_page(False, "pay now")], Emails(["basket", "paid"], 1))
    (wrong,) = find_view_problems(unpaid, before, FAILS, is_same_money=False)
    assert "gets the same emails as one who has: 'paid'" in wrong.sentence
    without_receipt = unpaid._replace(emails=Emails(["basket"], 1))
    assert list(find_view_problems(without_receipt, before, FAILS, is_same_money=False)) == []


SHOWS = """
import MAILER


@pytest.fixture
def shop(payment_sandbox):
    app = Flask("shop")
    app.paid, app.known = set(), set()

    @app.post("/buy")
    def buy():
        order = payment_sandbox.session.post(
            f"{payment_sandbox.base_url}/v1/orders/",
            json=ORDER | {"return_url": "http://shop.example/thanks?x=1"},
            timeout=5,
        ).json()
        app.known.add(order["id"])
        return order["id"]

    @app.post("/webhook")
    def webhook():
        look(request.json["order_id"])
        return "", 204

    @app.get("/thanks")
    def thanks():
        order_id = request.args["order_id"]
        look(order_id)
        return f"<h1>Order {order_id}</h1> {'Thank you!' if order_id in app.paid else 'Please pay.'}"

    def look(order_id):
        url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/"
        answer = payment_sandbox.session.get(url, timeout=5)
        answer.raise_for_status()
        if answer.json()["status"] == "completed" and order_id not in app.paid:
            app.paid.add(order_id)
            send(order_id)

    payment_sandbox.deliver_to(app)
    payment_sandbox.every("PT1H", lambda: [look(order_id) for order_id in app.known - app.paid])
    return app


def test_a_sale(payment_sandbox, shop):
    order_id = shop.test_client().post("/buy").text
    payment_sandbox.act(order_id)
    assert order_id in shop.paid


class Mail:
    def __init__(self, order_id):
        self.recipients, self.subject, self.body = ["you@shop.example"], f"Order {order_id}", "We have your money."


def send(order_id):
    SENT
"""
FLASK_MAIL = "from blinker import signal\n\nemail_dispatched = signal('email-dispatched')\n"
DJANGO = "outbox = []\n"


def shop_with_mailer(folder: Path, mailer: str) -> str:
    """Return a shop that sends emails through a stand-in for a library, which is written to the folder."""
    if mailer == "flask_mail":
        (folder / "flask_mail.py").write_text(FLASK_MAIL)
        return SHOWS.replace("MAILER", mailer).replace(
            "SENT", "flask_mail.email_dispatched.send(None, message=Mail(order_id))"
        )
    package = folder / "django" / "core"
    package.mkdir(parents=True, exist_ok=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "mail.py").write_text(DJANGO)
    cleared = SHOWS.replace(
        '    app = Flask("shop")', '    django.core.mail.outbox.clear()\n    app = Flask("shop")'
    )
    return cleared.replace("MAILER", "django.core.mail").replace(
        "SENT", "django.core.mail.outbox.append(Mail(order_id))"
    )


def test_a_correct_shop_without_books_passes(tmp_path: Path) -> None:
    """A correct shop without books has no findings."""
    right = shop_with_mailer(tmp_path, "flask_mail").replace(
        "app.paid, app.known = set(), set()", "app.paid, app.known, lock = set(), set(), threading.Lock()"
    )
    right = right.replace("        look(request.json", "        with lock:\n            look(request.json")
    right = right.replace(
        "        look(order_id)\n        return f",
        "        with lock:\n            look(order_id)\n        return f",
    )
    code, report, output = rehearse_until(has_many_variations, tmp_path, f"import threading\n{right}")
    assert (code, report["findings"]) == (0, []), output[-3000:]


MISTAKES = {
    "fails for unpaid customers": ("else 'Please pay.'", "else app.paid[0]"),
    "thanks customers who return early": (
        "        look(order_id)\n        return f",
        "        look(order_id)\n"
        "        url = f'{payment_sandbox.base_url}/v1/orders/{order_id}/'\n"
        "        if payment_sandbox.session.get(url, timeout=5).json()['status'] == 'new':\n"
        "            return f'<h1>Order {order_id}</h1> Thank you!'\n"
        "        return f",
    ),
    "fails for customers before the webhook": (
        "        look(order_id)\n        return f",
        "        app.known.remove(order_id) if order_id in app.paid else app.paid.remove(order_id)\n"
        "        app.known.add(order_id)\n        return f",
    ),
    "thanks every customer": ("'Thank you!' if order_id in app.paid else 'Please pay.'", "'Thank you!'"),
    "mails every customer": (
        '        answer.raise_for_status()\n        if answer.json()["status"] == "completed" and',
        "        if",
    ),
    "mails for each webhook": (" and order_id not in app.paid:", ":"),
    "never reads again": ("[look(order_id) for order_id in app.known - app.paid]", "None"),
}


@pytest.mark.parametrize(
    ("mistake", "mailer", "variation", "words"),
    [
        ("thanks every customer", "flask_mail", "action:1:fails", "shows the same text to a customer"),
        ("mails every customer", "flask_mail", "action:1:fails", "gets the same emails as one who has"),
        ("mails every customer", "django", "action:1:cancels", "gets the same emails as one who has"),
        (
            "mails for each webhook",
            "flask_mail",
            "webhook:2:twice",
            "an extra copy of an email",
        ),
        (
            "mails for each webhook",
            "django",
            "webhook:2:twice",
            "an extra copy of an email",
        ),
        (
            "fails for unpaid customers",
            "django",
            "action:1:fails",
            "the page /thanks fails: status 500",
        ),
        (
            "fails for customers before the webhook",
            "django",
            "action:1:returns-first",
            "the page /thanks fails when the customer returns: status 500",
        ),
        (
            "thanks customers who return early",
            "django",
            "action:1:returns-unpaid",
            "shows the same text to a customer who returns without having paid: 'Order # Thank you!'",
        ),
        ("never reads again", "django", "webhook:1:lost+webhook:2:lost", "does not get the email"),
    ],
)
def test_a_mistake_is_found(tmp_path: Path, mistake: str, mailer: str, variation: str, words: str) -> None:
    """Mistakes in pages and emails are found with Flask and with Django."""
    right = shop_with_mailer(tmp_path, mailer)
    wrong = right.replace(*MISTAKES[mistake])
    assert wrong != right
    code, report, output = rehearse_suite(tmp_path, wrong, f"--payment-rehearse-only={variation}")
    assert code == 1, output[-3000:]
    assert any(words in each["sentence"] for each in report["findings"]), report["findings"]


def test_a_suite_names_more_pages(tmp_path: Path) -> None:
    """A fixture adds pages, such as the shop's own API."""
    api = shop_with_mailer(tmp_path, "django").replace(
        '    @app.get("/thanks")',
        '    @app.get("/api/<order_id>")\n    def api(order_id):\n        return {"paid": True}\n\n    @app.get("/thanks")',
    )
    with_pages = f"{api}\n\n@pytest.fixture\ndef payment_pages():\n    return ['/api/{{order_id}}']\n"
    option = "--payment-rehearse-only=action:1:fails"
    assert rehearse_suite(tmp_path, api, option)[0] == 0
    _, report, output = rehearse_suite(tmp_path, with_pages, option)
    assert (
        "the page /api/… shows the same text to a customer who has not paid"
        in report["findings"][0]["sentence"]
    ), output
