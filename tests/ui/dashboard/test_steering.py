"""The dashboard controls a project's clock, scenario, faults, cards, codes, settings and snapshot."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.dashboard import Dashboard, run_in_shell
from tests.support.driver import Sandbox, by, card
from tests.support.payer import Page
from tests.support.shop import Shop


@pytest.mark.parametrize(
    ("button", "now", "notice"),
    [
        ("PT1M", "Sun 01 Mar 2026 12:01:00", "Moved to 12:01:00: nothing was due."),
        ("PT30M", "Sun 01 Mar 2026 12:30:00", "Moved to 12:30:00: 1 expiry."),
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
    assert page.ids["clock-next"] == "▶ Next: expiry 12:30"
    moved = browser.press(page, sandbox.agenda()[0]["at"])
    assert moved.ids["now"] == "Sun 01 Mar 2026 12:30:00"
    assert sandbox.read(order)["status"] == "expired"
    clock = next(form for form in page.forms if form.fields.get("to"))
    page = browser.send(clock, {"to": "2026-03-05T00:00:00"}, page)
    assert page.ids["now"] == "Thu 05 Mar 2026 00:00:00"
    refused = browser.send(clock, {"to": "2026-03-04T00:00:00"}, page)
    assert refused.ids["notice"] == "Choose a time in the future; it is now 5 Mar 00:00."
    assert "notice" in browser.send(clock, {"to": "tomorrow"}, page).ids
    page = browser.press(page, "3600")
    assert page.ids["mode"] == "running ×3600"
    assert sandbox.get("/control/clock/").json()["rate"] == 3600
    assert browser.press(page, "frozen").ids["mode"] == "frozen"


def test_a_move_is_stopped(watched: Sandbox, shop: Shop) -> None:
    """Another tab can stop a move, which reports its result."""
    watched.pay(watched.place(card()))
    watched.settle()
    watched.place(card(), expiration_period="PT1M")
    is_waiting, may_answer = shop.hold(204)
    browser = Dashboard(watched)
    page = browser.open()
    assert "moving" not in page.ids
    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(lambda: Dashboard(watched).press(page, "P1D"))
        assert is_waiting.wait(20)
        meanwhile = browser.open()
        assert "so far" in meanwhile.ids["moving"]
        form = meanwhile.form_to("/clock/stop/")
        assert "was stopped" in browser.send(form, {}, meanwhile).ids["notice"]
        moved = moving.result(20)
    may_answer.set()
    assert "as you asked" in moved.ids["notice"]
    assert watched.get("/control/clock/").json()["now"] < "2027"
    assert "had already stopped" in browser.send(form, {}, meanwhile).ids["notice"]


def test_a_scenario_is_chosen(sandbox: Sandbox) -> None:
    """A scenario is activated by name, its rules show their uses, and every page can return to the default."""
    browser = Dashboard(sandbox)
    page = browser.open("simulate/")
    assert "opens the payment page and leaves; the order expires" in page.ids["scenarios"]
    page = browser.press(page, "second-try-works")
    assert page.ids["notice"].startswith("Scenario second-try-works is in use")
    sandbox.place(card())
    page = browser.open("simulate/")
    assert "the payment fails" in page.ids["rules"]
    assert "Used once." in page.ids["rules"]
    assert sandbox.get("/control/scenarios/second-try-works/").json()["rules"][0]["uses"] == 1
    page = browser.press(browser.open("requests/"), "default")
    assert "/requests/" in page.url
    assert "scenario-on" not in page.ids
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


def switched_on(page: Page) -> set[str]:
    """Return the names of the switches that are on."""
    return {name for name in SWITCHES if page.ids[f"switch-{name}"] == "on"}


def test_faults_are_switched_on_and_off(sandbox: Sandbox) -> None:
    """Each switch leaves other faults unchanged."""
    own = {"when": {"path": "/v1/nothing/"}, "then": {"status": 500}}
    sandbox.put("/control/faults/", {"faults": [own]})
    browser = Dashboard(sandbox)
    page = browser.open("simulate/")
    for name in SWITCHES:
        page = browser.press(page, f"switch={name}")
        document = sandbox.get("/control/faults/").json()
        assert len(document["faults"]) + len(document["webhooks"]) == 2
        assert switched_on(page) == {name}
        assert page.ids["faults-on"] == "2 faults on: switch off"
        page = browser.press(page, f"switch={name}")
        assert sandbox.get("/control/faults/").json() == {"faults": [{**own, "matches": 0}], "webhooks": []}
    page = browser.press(page, "none")
    assert sandbox.get("/control/faults/").json() == {"faults": [], "webhooks": []}
    assert "faults-on" not in page.ids


def test_a_fault_for_one_call_is_off_once_it_was_applied(sandbox: Sandbox) -> None:
    """A fault for one call is used up; switching another fault does not arm it again."""
    dashboard = Dashboard(sandbox)
    page = dashboard.press(dashboard.open("simulate/"), "unavailable")
    for expected in ([503, 201], [201], [503, 201]):
        assert [sandbox.create(card()).status_code for _ in expected] == expected
        page = dashboard.open("simulate/")
        assert page.ids["switch-unavailable"] == "off"
        page = dashboard.press(page, "webhook-late" if expected == [503, 201] else "unavailable")


def test_a_test_card_is_stored_by_one_click(sandbox: Sandbox) -> None:
    """The stored card is listed with its details, and a command charges it."""
    browser = Dashboard(sandbox)
    page = browser.open("simulate/")
    form = page.form_to("simulate/cards/")
    for number, use in enumerate(("one-click", "recurring"), 1):
        page = browser.send(form, {"card": "mastercard", "use": use, "amount": "5,50"}, page)
        assert page.ids["notice"].startswith("Stored 510510******5100")
        for words in ("Mastercard", "5100", "12/2031", "J. de Vries", "€5.50"):
            assert words in page.ids["cards"], words
        run_in_shell(f"{page.ids['charge-1']} -sS --fail", sandbox.key)
        orders = sandbox.get("/control/orders/").json()["items"]
        assert (orders[0]["amount"], len(orders)) == (550, 2 * number)
    assert "Choose one of: " in browser.send(form, {"card": "declined"}, page).ids["notice"]


def test_settings_are_changed(sandbox: Sandbox) -> None:
    """One form changes all settings; the form that was opened changes none."""
    browser = Dashboard(sandbox)
    page = browser.open("settings/")
    before = sandbox.get("/control/project/").json()["settings"]
    form = page.form_to("settings/")
    browser.send(form, {}, page)
    assert sandbox.get("/control/project/").json()["settings"] == before
    changes = {
        "name": "Kousen",
        "mode": "live",
        "absolute_urls": "1",
        "payment_methods": ["credit-card", "wallet-web"],
        "numeric_ids": "text",
        "personal_data": "required",
        "refund_mismatch": "lines",
        "unknown_locale": "ignore",
    }
    aliases, banks = {"mine": "wallet-web"}, [{"id": "INGBNL2A", "name": "ING"}]
    as_text = {"aliases": json.dumps(aliases), "issuers": json.dumps(banks), "webhook_timeout": "2.5"}
    browser.send(form, {**changes, **as_text, "issuer_required": []}, page)
    settings = sandbox.get("/control/project/").json()["settings"]
    expected = {**changes, "absolute_urls": True, "issuer_required": False, "webhook_timeout": 2.5}
    assert settings == {**before, **expected, "aliases": aliases, "issuers": settings["issuers"]}
    assert [{name: bank[name] for name in ("id", "name")} for bank in settings["issuers"]] == banks
    assert "INGBNL2A" in browser.open("settings/").form_to("settings/").fields["issuers"]


def test_rejected_settings_are_summarized_at_the_top(sandbox: Sandbox) -> None:
    """A summary above the form links to each wrong field; the first has the focus, and nothing changes."""
    browser = Dashboard(sandbox)
    page = browser.open("settings/")
    before = sandbox.get("/control/project/").json()["settings"]
    wrong = {"webhook_timeout": "soon", "unknown_fields": "perhaps", "payment_methods": "cash", "name": "New"}
    page = browser.send(page.form_of("webhook_timeout"), {**wrong, "webhook_url": "ftp://x"}, page, 400)
    html = page.answer.text
    assert html.index('data-testid="errors"') < html.index('data-testid="settings"')
    for name in ("webhook_timeout", "unknown_fields", "payment_methods", "webhook_url"):
        assert f"#{name}" in page.links
        control = re.search(rf'<\w+ [^>]*id="{name}"[^>]*>', html)
        assert control is not None
        assert f'aria-invalid="true" aria-describedby="{name}-error"' in control[0]
    assert html.count("autofocus") == 1
    assert "<title>These settings were not saved · Settings" in html
    for refused in ("[]", '["no bank"]', "{", '[{"name": "ING"}]'):
        wrong_page = browser.send(page.form_of("issuers"), {"issuers": refused}, page, 400)
        assert "error-issuers" in wrong_page.ids
    assert sandbox.get("/control/project/").json()["settings"] == before


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
    form = page.form_to("state/")

    def load(text: str) -> Page:
        files, headers = {"file": ("snapshot.json", text)}, {"Origin": sandbox.url}
        return Page(browser.http.post(form.action, data=form.fields, files=files, headers=headers))

    for wrong in ("{}", "[]", "no JSON", json.dumps({**saved.json(), "pad": None})):
        refused = load(wrong)
        assert refused.status == 400
        assert refused.ids["errors"].startswith("This file cannot be loaded:")
    assert load(saved.text).status == 200
    assert sandbox.read(order)["status"] == "new"


ODD = [
    ("orders/{id}/act/", {"action": "customer pay", "card": "bogus"}, 400),
    ("orders/{id}/act/", {"action": "customer fly"}, 400),
    ("orders/{id}/act/", {"action": "merchant void", "amount": "0"}, 400),
    ("orders/{id}/act/", {"action": "merchant void", "amount": "9999999"}, 409),
    ("orders/{id}/act/", {"action": "customer fail", "reason": "a\0b"}, 400),
    ("settings/", {"aliases-sent": "1", "aliases": "[" * 20_000}, 400),
    ("settings/", {"name-sent": "1", "name": "a\0b"}, 400),
    ("settings/", {"name-sent": "1", "name": "x" * (1 << 20)}, 413),
    ("simulate/", {"yaml": "# " + "\u2603" * 400_000}, 413),
    ("simulate/faults/", {"switch": "bogus"}, 404),
    ("clock/", {"to": "9999-99-99"}, 400),
    ("clock/", {}, 400),
]


def test_odd_forms_are_refused(sandbox: Sandbox) -> None:
    """An invalid form gets an error page, and the state is unchanged."""
    order = sandbox.place(card(capture_mode="manual"))
    dashboard = Dashboard(sandbox)
    token = dashboard.token
    before = sandbox.get("/control/state/").json()
    for path, fields, status in ODD:
        answer = dashboard.http.post(
            f"{dashboard.base}{path.format(id=order['id'])}",
            data={"token": token, **fields},
            headers={"Origin": sandbox.url},
        )
        assert (answer.status_code, "<main" in answer.text) == (status, True), (path, answer.text[:500])
        assert sandbox.get("/control/state/").json() == before, path
