"""Messages of the dashboard say what went wrong and what to do next."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.advance import AdvanceResult, WebhookInFlight
from payment_sandbox.projects.epoch import ProcessedEvent
from payment_sandbox.ui.dashboard.notices import move_notice
from tests.support.dashboard import Dashboard
from tests.support.driver import NOBODY, Sandbox, card
from tests.support.servers import make_server


def test_a_move_that_stops_says_why(watched: Sandbox) -> None:
    """The notice names unanswered webhooks, and a slow shop; a stop as requested is no refusal."""
    project = watched.project_in_process
    now = project.now()
    event: ProcessedEvent = {"at": timestamp(now), "kind": "webhook", "order_id": "x", "label": "webhook"}
    in_flight: WebhookInFlight = {"delivery_id": "w", "order_id": "x", "url": "http://shop.example/"}
    unanswered = move_notice(project, AdvanceResult(now, now, [event], True, [in_flight, in_flight]))
    assert (unanswered.is_refusal, unanswered.orders) == (True, ())
    assert unanswered.text == "Stopped at 12:00:00: your shop has not answered 2 webhooks yet."
    requested = move_notice(project, AdvanceResult(now, now, [], True, [], True))
    assert not requested.is_refusal
    assert requested.text == "Stopped at 12:00:00 as you asked: nothing was due so far."
    watched.pay(watched.place(card()))
    watched.settle()
    slow = move_notice(project, AdvanceResult(now, now, [], True, [in_flight])).text
    assert re.fullmatch(r"Stopped at 12:00:00: your shop takes \d+\.\d+ s for each of 3 webhooks.", slow)


FOREIGN = "This form does not come from this sandbox. Open the sandbox's own page and click there."
FORMS = {
    "without a token": (lambda sandbox: "", FOREIGN),
    "with an invented token": (lambda sandbox: "0" * 64, FOREIGN),
    "of another project": (
        lambda sandbox: Dashboard(Sandbox(sandbox.server)).token,
        "This form belongs to another project. Load the page of this project and click again.",
    ),
    "of a server before its restart": (
        lambda sandbox: token_of_another_server(),
        "The server was restarted. Load the page and click again.",
    ),
}


def token_of_another_server() -> str:
    """Return the token of a page that was loaded before a restart."""
    with make_server(seed=1) as server:
        return Dashboard(Sandbox(server)).token


@pytest.mark.parametrize(("make_token", "message"), FORMS.values(), ids=FORMS)
def test_a_refused_form_says_where_it_comes_from(make_token: Callable[[Sandbox], str], message: str) -> None:
    """Every form of a page offers to load it again, and distinguishes foreign forms from those before a restart."""
    with make_server(seed=1) as server:
        sandbox = Sandbox(server)
        order, token = sandbox.authorized(), make_token(sandbox)
        browser = Dashboard(sandbox)
        page = browser.open(f"orders/{order['id']}/")
        forms = [form for form in page.forms if "token" in form.fields]
        assert len(forms) > 5
        for form in forms:
            refused = browser.send(form, {"token": token}, page, 403)
            assert refused.ids["refused"] == "Load the page again"
            assert message in refused.text
            assert ("restarted" in refused.text) == ("restarted" in message)
            assert "Not allowed" not in refused.text


@pytest.mark.parametrize(
    ("path", "remark"),
    [
        (f"orders/?before={NOBODY}", "no longer exists"),
        ("orders/?before=nothing", "no longer exists"),
        ("requests/?before=x", "no longer exists"),
        ("orders/?show=payed", "This filter does not exist"),
        ("requests/?show=payed", "This filter does not exist"),
    ],
)
def test_a_wrong_place_or_filter_shows_the_whole_list(watched: Sandbox, path: str, remark: str) -> None:
    """An unknown position or filter is named in a remark, and the list shows everything."""
    order = watched.pay(watched.place(card(), merchant_order_id="shop-77"))
    watched.settle()
    watched.read(order)
    browser = Dashboard(watched)
    page = browser.open(path)
    assert remark in page.ids["remark"]
    assert "shop-77" in page.text
    assert "no-match" not in page.ids
    assert "remark" not in browser.open(path.partition("?")[0]).ids


def test_a_refusal_is_shown_once(sandbox: Sandbox) -> None:
    """The message is shown beside its field or, without one, above the page."""
    order = sandbox.authorized()
    browser = Dashboard(sandbox)
    page = browser.open(f"orders/{order['id']}/")
    refused = browser.press(page, "merchant capture", amount="99.00")
    assert "is too much" in refused.ids["why-refused"]
    assert "notice" not in refused.ids
    browser.press(page, "merchant void", amount="20.00")
    late = browser.press(page, "merchant capture", amount="1.00")
    assert "why-refused" not in late.ids
    assert "notice" in late.ids


def test_settings_have_examples_that_fit(sandbox: Sandbox) -> None:
    """Each text field has an example that is accepted."""
    browser = Dashboard(sandbox)
    page = browser.open("settings/")
    fields = {name.removeprefix("setting-") for name in page.ids if name.startswith("setting-")}
    examples = {
        name: unescape(example)
        for name, example in re.findall(r'name="(\w+)" value="[^"]*" placeholder="([^"]+)"', page.answer.text)
    }
    assert examples.keys() == fields
    assert "empty means never" in page.text
    form = next(form for form in page.forms if "name-sent" in form.fields)
    assert browser.send(form, examples, page).ids["notice"] == "Saved."
    settings: dict[str, Any] = sandbox.get("/control/project/").json()["settings"]
    assert settings["aliases"] == {"my-bank-button": "bank-redirect-nl"}
    assert settings["expires_after"] == "P7D"
