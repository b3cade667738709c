"""The dashboard controls a project's clock, webhooks, scenario, faults, settings and snapshot."""

import json

import pytest

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, by, card
from tests.support.shop import Shop


@pytest.mark.parametrize(
    ("button", "now", "notice"),
    [
        ("PT1M", "Sun 01 Mar 2026 12:01:00", "Moved to 12:01:00: nothing was due."),
        ("PT30M", "Sun 01 Mar 2026 12:30:00", "Moved to 12:30:00: 1 expiry."),
        ("P1D", "Mon 02 Mar 2026 12:00:00", "Moved to 2 Mar 12:00: 1 expiry."),
        ("P7D", "Sun 08 Mar 2026 12:00:00", "Moved to 8 Mar 12:00: 1 expiry."),
        ("next", "Sun 01 Mar 2026 12:30:00", "Moved to 12:30:00: 1 expiry."),
        ("idle", "Tue 31 Mar 2026 12:00:00", "Moved to 31 Mar 12:00: 2 expiries."),
    ],
)
def test_the_clock_is_moved(sandbox: Sandbox, button: str, now: str, notice: str) -> None:
    """Each button advances the clock and reloads the current page with a notice, which links to the orders."""
    order = sandbox.place(card())
    sandbox.place(by("bank-transfer"))
    browser = Dashboard(sandbox)
    page = browser.press(browser.open("requests/"), button)
    assert page.ids["now"] == now
    assert page.url.partition("?")[0].endswith("/requests/")
    assert page.ids["notice"].startswith(notice)
    shown = page.answer.text.partition('data-testid="notice"')
    assert 'role="status"' in shown[0].rpartition("<")[2] + shown[2].partition(">")[0]
    assert (f"/orders/{order['id']}/" in shown[2].partition("</p>")[0]) == (button != "PT1M")
    assert "notice" not in browser.open("requests/").ids


def test_the_clock_goes_to_a_time(sandbox: Sandbox) -> None:
    """The clock can be set to a typed time or to an agenda entry's, but not backward; it can run and be frozen."""
    order = sandbox.place(card())
    browser = Dashboard(sandbox)
    page = browser.open()
    moved = browser.press(page, sandbox.agenda()[0]["at"])
    assert moved.ids["now"] == "Sun 01 Mar 2026 12:30:00"
    assert sandbox.read(order)["status"] == "expired"
    clock = next(form for form in page.forms if form.fields.get("to"))
    page = browser.send(clock, {"to": "2026-03-05T00:00:00"}, page)
    assert page.ids["now"] == "Thu 05 Mar 2026 00:00:00"
    refused = browser.send(clock, {"to": "2026-03-04T00:00:00"}, page)
    assert refused.ids["notice"] == "Choose a time in the future; it is now 5 Mar 00:00."
    assert "notice" in browser.send(clock, {"to": "tomorrow"}, page).ids
    assert page.ids["now"] == "Thu 05 Mar 2026 00:00:00"
    page = browser.press(page, "3600")
    assert page.ids["mode"] == "running ×3600"
    assert sandbox.get("/control/clock/").json()["rate"] == 3600
    assert browser.press(page, "frozen").ids["mode"] == "frozen"


def test_the_webhook_address_is_set_where_it_is_missing(sandbox: Sandbox, shop: Shop) -> None:
    """The order's page says that no webhook was sent; the page of requests sets the address, if it is valid."""
    order = sandbox.pay(sandbox.place(card()))
    browser = Dashboard(sandbox)
    assert "nobody-told" in browser.open(f"orders/{order['id']}/").ids
    page = browser.open("requests/")
    assert "no-address" in page.ids
    address_form = page.form_of("webhook_url")
    wrong = browser.send(address_form, {"webhook_url": "localhost"}, page, 400)
    assert "error-webhook_url" in wrong.ids
    page = browser.send(address_form, {"webhook_url": shop.url}, page)
    assert "no-address" not in page.ids
    assert sandbox.get("/control/project/").json()["settings"]["webhook_url"] == shop.url


def test_a_scenario_is_chosen(sandbox: Sandbox) -> None:
    """A scenario is activated by name, and its rules show their uses."""
    browser = Dashboard(sandbox)
    page = browser.open("simulate/")
    assert "second-try-works" in page.ids["scenarios"]
    assert "opens the payment page and leaves; the order expires" in page.ids["scenarios"]
    page = browser.press(page, "second-try-works")
    sandbox.place(card())
    page = browser.open("simulate/")
    assert "second-try-works" in page.text
    assert "the payment fails" in page.ids["rules"]
    assert "Used once." in page.ids["rules"]
    assert sandbox.get("/control/scenarios/second-try-works/").json()["rules"][0]["uses"] == 1
    page = browser.press(page, "default")
    assert sandbox.get("/control/scenario/").json()["name"] == "default"


def test_a_scenario_is_pasted(sandbox: Sandbox) -> None:
    """Errors of a pasted scenario are shown with their lines, and the text is preserved."""
    browser = Dashboard(sandbox)
    page = browser.open("simulate/")
    paste_form = next(
        form
        for form in page.forms
        if ("", "") in form.buttons and not form.fields.get("to") and form.action.endswith("simulate/")
    )
    wrong = "name: mine\nrules:\n  - when: {amount: 5}\n    then: {custmer: pays}\n"
    refused = browser.send(paste_form, {"yaml": wrong}, page, 400)
    assert "Line 4, column" in refused.ids["mistakes"]
    assert "customer" in refused.ids["mistakes"]
    assert "custmer: pays" in refused.ids["yaml"]
    assert sandbox.get("/control/scenario/").json()["name"] == "default"
    browser.send(paste_form, {"yaml": wrong.replace("custmer", "customer").replace("\n", "\r\n")}, page)
    assert sandbox.get("/control/scenario/").json()["name"] == "mine"


SWITCHES = ("lost-answer", "unavailable", "slow", "webhook-twice", "webhook-late", "unreachable")


@pytest.mark.parametrize("name", SWITCHES)
def test_faults_are_switched_on_and_off(sandbox: Sandbox, name: str) -> None:
    """Each switch leaves other faults unchanged."""
    own = {"when": {"path": "/v1/nothing/"}, "then": {"status": 500}}
    sandbox.put("/control/faults/", {"faults": [own]})
    browser = Dashboard(sandbox)
    page = browser.press(browser.open("simulate/"), f"switch={name}")
    document = sandbox.get("/control/faults/").json()
    assert len(document["faults"]) + len(document["webhooks"]) == 2
    assert page.ids[f"switch-{name}"] == "on"
    page = browser.press(page, f"switch={name}")
    assert sandbox.get("/control/faults/").json() == {"faults": [{**own, "matches": 0}], "webhooks": []}
    browser.press(page, "none")
    assert sandbox.get("/control/faults/").json() == {"faults": [], "webhooks": []}


def test_settings_are_changed(sandbox: Sandbox) -> None:
    """One form changes all settings; an invalid value is reported at its field and changes nothing."""
    browser = Dashboard(sandbox)
    page = browser.open("settings/")
    before = sandbox.get("/control/project/").json()["settings"]
    form = page.form_to("settings/")
    browser.send(form, {}, page)
    assert sandbox.get("/control/project/").json()["settings"] == before
    changes = {"name": "Kousen", "mode": "live", "aliases": '{"mine": "wallet-web"}', "absolute_urls": "1"}
    browser.send(form, {**changes, "payment_methods": ["credit-card", "wallet-web"]}, page)
    settings = sandbox.get("/control/project/").json()["settings"]
    assert (settings["name"], settings["mode"], settings["aliases"]) == (
        "Kousen",
        "live",
        {"mine": "wallet-web"},
    )
    assert (settings["absolute_urls"], settings["payment_methods"]) == (True, ["credit-card", "wallet-web"])
    for_plugins = {"numeric_ids": "text", "personal_data": "required", "refund_mismatch": "lines"}
    banks = [{"id": "INGBNL2A", "name": "ING"}]
    sent = {
        **for_plugins,
        "unknown_locale": "ignore",
        "issuer_required": [],
        "issuers": json.dumps(banks),
    } | {"webhook_timeout": "2.5"}
    browser.send(form, {**changes, **sent, "payment_methods": ["credit-card", "wallet-web"]}, page)
    settings = sandbox.get("/control/project/").json()["settings"]
    assert {name: settings[name] for name in for_plugins} == for_plugins
    assert (settings["unknown_locale"], settings["issuer_required"]) == ("ignore", False)
    assert settings["webhook_timeout"] == 2.5
    assert [{name: bank[name] for name in ("id", "name")} for bank in settings["issuers"]] == banks
    assert "INGBNL2A" in browser.open("settings/").form_to("settings/").fields["issuers"]
    wrong = browser.send(form, {"webhook_url": "ftp://x", "name": "Other"}, page, 400)
    assert "error-webhook_url" in wrong.ids
    for refused in ("[]", '["no bank"]', "{", '[{"name": "ING"}]'):
        wrong = browser.send(form, {"issuers": refused}, page, 400)
        assert "error-issuers" in wrong.ids
    assert sandbox.get("/control/project/").json()["settings"] == settings


def test_a_project_is_saved_loaded_and_reset(sandbox: Sandbox) -> None:
    """A project is saved as a file and restored from it; an invalid file is refused."""
    order = sandbox.place(card())
    for _ in range(2):
        sandbox.place(card(), extra={"text": "x" * 600_000})
    browser = Dashboard(sandbox)
    saved = browser.http.get(f"{browser.base}state/")
    assert "attachment" in saved.headers["Content-Disposition"]
    assert saved.json() == sandbox.get("/control/state/").json()
    assert len(saved.content) > 1 << 20, "a snapshot may exceed the size limit of other bodies"
    page = browser.open("settings/")
    browser.send(page.form_to("reset/"), {}, page)
    assert sandbox.get(f"/v1/orders/{order['id']}/").status_code == 404
    token = page.form_to("state/").fields["token"]

    def load(text: str) -> int:
        headers = {"Origin": sandbox.url}
        files = {"file": ("snapshot.json", text)}
        address = f"{browser.base}state/"
        data = {"token": token}
        answer = browser.http.post(address, data=data, files=files, headers=headers)
        return answer.status_code

    assert load("{}") == 400
    assert load("no JSON") == 400
    assert load(json.dumps({**saved.json(), "pad": None})) == 400
    assert load(saved.text) == 200
    assert sandbox.read(order)["status"] == "new"
