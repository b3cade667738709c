"""A shop without books is checked by its pages and emails."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_payment_sandbox.rehearsal.changes import ChangedStep, parse_changed_step
from pytest_payment_sandbox.rehearsal.showing import (
    CustomerView,
    Emails,
    ShownPage,
    find_view_problems,
    normalize,
)
from tests.rehearsal.test_rehearsing import (
    A_SALE,
    BOOKS,
    rehearse_suite,
    rehearse_until,
)

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


THANKS, WAITS = shown_page(True, "thank you"), shown_page(True, "we wait")
UNPAID, PAY_NOW = shown_page(False, "thank you"), shown_page(False, "pay now")
COMPLETED = shown_page(True, "sale # is completed")
LISTED = shown_page(None, "webhook # processing webhook # completed")
LISTED_TWICE = shown_page(None, "webhook # processing webhook # completed webhook # completed")
LISTED_BACKWARDS = shown_page(None, "webhook # completed webhook # completed webhook # processing")
ONE_PARCEL = shown_page(None, "hat for sale #")
TWO_PARCELS = shown_page(None, "hat for sale # hat for sale #")
FAILING = shown_page(False, None)._replace(error="status 500")
MAILS = Emails(["basket", "paid"], 1)
MOVED = True
"""Money has moved by the change."""


def view(*pages: ShownPage, mails: Emails | None = None) -> CustomerView:
    """Return what a customer sees."""
    return CustomerView(list(pages), mails) if mails is not None else CustomerView(list(pages))


@pytest.mark.parametrize(
    ("before", "now", "change", "has_moved", "words"),
    [
        # a page must tell a paid order from an unpaid one
        (view(THANKS), view(UNPAID), FAILS, MOVED, "same text to a customer who has not paid: 'thank you'"),
        (view(THANKS), view(PAY_NOW), FAILS, MOVED, ""),
        (view(THANKS), view(shown_page(None, "thank you")), FAILS, MOVED, ""),
        (view(THANKS), view(THANKS), FAILS, MOVED, ""),
        # the page of an unpaid attempt may show that its purchase is paid by another one
        (view(UNPAID, THANKS), view(UNPAID, THANKS), [], not MOVED, ""),
        (view(UNPAID, THANKS), view(UNPAID, UNPAID), FAILS, MOVED, "to a customer who has not paid"),
        # a harmless change must not alter a page, unless money has moved or the page always varies
        (view(THANKS), view(WAITS), TWICE, not MOVED, "page /thanks shows 'we wait' instead of 'thank you'"),
        (view(THANKS), view(WAITS), TWICE, MOVED, ""),
        (view(THANKS), view(WAITS), FAILS, not MOVED, ""),
        (view(shown_page(True, None)), view(WAITS), TWICE, not MOVED, ""),
        # a failing page is a problem of any change, unless it fails or is missing in the unchanged test
        (view(THANKS), view(FAILING), FAILS, MOVED, "the page /thanks fails: status 500"),
        (view(THANKS), view(FAILING), TWICE, not MOVED, "the page /thanks fails: status 500"),
        (view(FAILING), view(FAILING), FAILS, MOVED, ""),
        (view(), view(FAILING), FAILS, MOVED, ""),
        # a list of webhooks has one entry for each that arrives; a list of goods does not
        (view(LISTED), view(LISTED_TWICE), TWICE, not MOVED, ""),
        (view(LISTED_TWICE), view(LISTED), TWICE, not MOVED, ""),
        (view(LISTED_TWICE), view(LISTED_BACKWARDS), TWICE, not MOVED, ""),
        (view(ONE_PARCEL), view(TWO_PARCELS), TWICE, not MOVED, "'hat for sale # hat for sale #' instead of"),
        (
            view(COMPLETED),
            view(shown_page(True, "sale # is new")),
            TWICE,
            not MOVED,
            "'sale # is new' instead of",
        ),
        (view(COMPLETED), view(shown_page(True, "sale #")), TWICE, not MOVED, "'sale #' instead of"),
        # extra and missing emails are problems, and so is a receipt for an unpaid customer
        (
            view(THANKS, mails=MAILS),
            view(THANKS, mails=Emails(["basket", "paid", "paid"], 1)),
            TWICE,
            not MOVED,
            "an extra copy of an email",
        ),
        (
            view(THANKS, mails=MAILS),
            view(THANKS, mails=Emails(["basket"], 1)),
            TWICE,
            not MOVED,
            "does not get the email",
        ),
        (
            view(THANKS, mails=MAILS),
            view(PAY_NOW, mails=MAILS),
            FAILS,
            MOVED,
            "gets the same emails as one who has: 'paid'",
        ),
        (view(THANKS, mails=MAILS), view(PAY_NOW, mails=Emails(["basket"], 1)), FAILS, MOVED, ""),
    ],
)
def test_what_customers_see_is_compared_with_the_unchanged_run(
    before: CustomerView, now: CustomerView, change: Sequence[ChangedStep], has_moved: bool, words: str
) -> None:
    """A page or an email that misleads a customer is a problem; other differences are none."""
    problems = [
        each.sentence for each in find_view_problems(now, before, change, is_same_money=not has_moved)
    ]
    assert bool(problems) is bool(words)
    assert all(words in each for each in problems)


SHOWS = (
    f"import MAILER\n{BOOKS}{A_SALE}"
    + """

class Mail:
    def __init__(self, order_id):
        self.recipients, self.subject, self.body = ["you@shop.example"], f"Order {order_id}", "We have your money."


def send(order_id):
    SENT
"""
)
SHOWS = SHOWS.replace("ORDER)[", "ORDER | {'return_url': 'http://shop.example/thanks?x=1'})[")
SHOWS = SHOWS.replace("app.mails.append(order_id)", "send(order_id)").replace(
    "def payment_books", "def no_books"
)
SHOWS = SHOWS.replace(
    '    @app.post("/webhook")',
    """    @app.get("/thanks")
    def thanks():
        order_id = request.args["order_id"]
        with lock:
            look(order_id)
        return f"<h1>Order {order_id}</h1> {'Thank you!' if app.paid.get(order_id) else 'Please pay.'}"

    @app.post("/webhook")""",
)
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
    right = shop_with_mailer(tmp_path, "flask_mail")
    code, report, output = rehearse_until(lambda report: report["variations"] > 10, tmp_path, right)
    assert (code, report["findings"]) == (0, []), output[-3000:]


LOOKS = "            look(order_id)\n        return f"
MISTAKES = {
    "fails for unpaid customers": ("else 'Please pay.'", "else 1 / 0"),
    "thanks customers who return early": (
        LOOKS,
        "            look(order_id)\n"
        "        url = f'{payment_sandbox.base_url}/v1/orders/{order_id}/'\n"
        "        if payment_sandbox.session.get(url, timeout=5).json()['status'] == 'new':\n"
        "            return f'<h1>Order {order_id}</h1> Thank you!'\n"
        "        return f",
    ),
    "fails for customers before the webhook": (
        LOOKS,
        "            app.paid[order_id] or 1 / 0\n        return f",
    ),
    "thanks every customer": ("'Thank you!' if app.paid.get(order_id) else 'Please pay.'", "'Thank you!'"),
    "mails every customer": ('if status == "completed":', "if True:"),
    "mails for each webhook": ("if is_news:", "if True:"),
}


@pytest.mark.parametrize(
    ("mistake", "mailer", "variation", "words"),
    [
        ("thanks every customer", "flask_mail", "action:1:fails", "shows the same text to a customer"),
        ("mails every customer", "django", "action:1:cancels", "gets the same emails as one who has"),
        (
            "mails for each webhook",
            "flask_mail",
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
