"""Messages of the dashboard say what went wrong and what to do next."""

import re
from html import unescape
from typing import Any

import pytest

from payment_sandbox.operations.advance import AdvanceResult
from payment_sandbox.projects.settings import SettingsForm
from payment_sandbox.web.dashboard.notices import move_notice
from payment_sandbox.web.dashboard.settings_page import EDITABLE_SETTINGS
from tests.support.dashboard import Dashboard
from tests.support.driver import NOBODY, Sandbox, card
from tests.support.servers import make_server


def test_a_move_that_stops_early_says_why(watched: Sandbox) -> None:
    """The notice names the unanswered webhooks; it is not shown as a success."""
    project = watched.project_in_process
    now = project.now()
    result = AdvanceResult(now, now, [{"kind": "webhook", "order_id": "x"}], True, [{}, {}])
    notice = move_notice(project, result)
    assert notice.is_refusal
    assert notice.orders == ()
    assert notice.text == "Stopped at 12:00:00: your shop has not answered 2 webhooks yet."


def test_a_slow_shop_is_named(watched: Sandbox) -> None:
    """The notice says how long the shop takes for each webhook."""
    project = watched.project_in_process
    now = project.now()
    watched.pay(watched.place(card()))
    watched.settle()
    notice = move_notice(project, AdvanceResult(now, now, [], True, [{}]))
    assert re.fullmatch(
        r"Stopped at 12:00:00: your shop takes \d+\.\d+ s for each of 3 webhooks.", notice.text
    )


def token_of_another_server() -> str:
    """Return the token of a page that was loaded before a restart."""
    with make_server(seed=1) as server:
        token: str = Dashboard(Sandbox(server)).open("settings/").forms[-1].fields["token"]
        return token


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("", "This form does not come from this sandbox. Open the sandbox's own page and click there."),
        (
            "0" * 64,
            "This form does not come from this sandbox. Open the sandbox's own page and click there.",
        ),
        (
            "another project",
            "This form belongs to another project. Load the page of this project and click again.",
        ),
    ],
)
def test_a_foreign_form_is_distinguished_from_an_old_one(sandbox: Sandbox, token: str, message: str) -> None:
    """A foreign form's message does not mention a restart."""
    browser = Dashboard(sandbox)
    page = browser.open("settings/")
    if token == "another project":
        token = Dashboard(Sandbox(sandbox.server)).open("settings/").forms[-1].fields["token"]
    refused = browser.send(page.forms[-1], {"token": token}, page, 403)
    assert refused.ids["refused"] == "Load the page again"
    assert message in refused.text
    assert "restarted" not in refused.text


def test_a_form_of_a_server_that_was_restarted() -> None:
    """Every form reports the restart and offers to load the page again."""
    with make_server(seed=1) as server:
        sandbox = Sandbox(server)
        order = sandbox.authorized()
        browser = Dashboard(sandbox)
        page = browser.open(f"orders/{order['id']}/")
        forms = [form for form in page.forms if "token" in form.fields]
        assert len(forms) > 5
        other_token = token_of_another_server()
        for form in forms:
            form.fields["token"] = other_token
            refused = browser.send(form, {}, page, 403)
            assert refused.ids["refused"] == "Load the page again"
            assert "The server was restarted. Load the page and click again." in refused.text
            assert "Not allowed" not in refused.text


@pytest.mark.parametrize(
    "path",
    [f"orders/?before={NOBODY}", "orders/?before=nothing", "requests/?before=x"],
)
def test_a_wrong_place_in_a_list_shows_its_beginning(watched: Sandbox, path: str) -> None:
    """An invalid position shows the list from its beginning with a remark."""
    order = watched.pay(watched.place(card(), merchant_order_id="shop-77"))
    watched.settle()
    watched.read(order)
    browser = Dashboard(watched)
    page = browser.open(path)
    assert "no longer exists" in page.ids["remark"]
    assert "shop-77" in page.text
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


def test_every_setting_is_in_a_group() -> None:
    """All settings but the seed can be edited; a new seed would change the sequence of identifiers."""
    assert sorted([*EDITABLE_SETTINGS, "seed"]) == sorted(SettingsForm().fields)


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
    assert "Delete the project when unused for (leave empty for never)" in page.text
    form = next(form for form in page.forms if "name-sent" in form.fields)
    assert browser.send(form, examples, page).ids["notice"] == "Saved."
    settings: dict[str, Any] = sandbox.get("/control/project/").json()["settings"]
    assert settings["aliases"] == {"my-bank-button": "bank-redirect-nl"}
    assert settings["expires_after"] == "P7D"


def test_the_next_event_names_its_day(sandbox: Sandbox) -> None:
    """The button shows the date of an event on another day."""
    sandbox.authorized(expiration_period="P3D")
    assert Dashboard(sandbox).open().ids["clock-next"] == "▶ Next: authorization expiry 4 Mar 12:00"


def test_a_stopped_move_reports_its_result(watched: Sandbox) -> None:
    """A stopped clock move is reported as requested, not as a failure."""
    project = watched.project_in_process
    now = project.now()
    notice = move_notice(project, AdvanceResult(now, now, [], True, [], True))
    assert notice.text == "Stopped at 12:00:00 as you asked: nothing was due so far."
    assert not notice.is_refusal
