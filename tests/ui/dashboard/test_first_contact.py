"""What a new user meets: settings, scenarios, projects, and a first payment without a webhook address."""

import re

import pytest
import requests

from payment_sandbox.ui.dashboard.frame import VIEW_TITLES
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.payer import HTML, Page
from tests.support.servers import make_server
from tests.support.shop import Shop


def test_rejected_settings_are_summarized_at_the_top(sandbox: Sandbox) -> None:
    """A summary above the form links to each wrong field; the first has the focus, and the title says it."""
    browser = Dashboard(sandbox)
    page = browser.open("settings/")
    wrong = {"webhook_timeout": "soon", "unknown_fields": "perhaps", "payment_methods": "cash"}
    page = browser.send(page.form_of("webhook_timeout"), wrong, page, 400)
    html = page.answer.text
    assert html.index('data-testid="errors"') < html.index('data-testid="settings"')
    for name in wrong:
        assert f"#{name}" in page.links
        control = re.search(rf'<\w+ [^>]*id="{name}"[^>]*>', html)
        assert control is not None
        assert f'aria-invalid="true" aria-describedby="{name}-error"' in control[0]
    assert html.count("autofocus") == 1
    assert "<title>These settings were not saved · Settings" in html


def test_a_wrong_file_is_named_as_such(sandbox: Sandbox) -> None:
    """The same summary explains a file that is no snapshot."""
    browser = Dashboard(sandbox)
    page = browser.open("settings/")
    answer = browser.http.post(
        page.form_to("/state/").action,
        data=page.form_to("/state/").fields,
        files={"file": b"[]"},
        headers={"Origin": sandbox.url},
    )
    assert Page(answer).ids["errors"].startswith("This file cannot be loaded:")


def test_a_chosen_scenario_is_announced_on_every_page(sandbox: Sandbox) -> None:
    """After a choice there is a notice; each view shows the scenario until the default is chosen there."""
    browser = Dashboard(sandbox)
    page = browser.open("simulate/")
    assert "scenario-on" not in page.ids
    page = browser.press(page, "webhook-late")
    assert page.ids["notice"].startswith("Scenario webhook-late is in use")
    for view in VIEW_TITLES:
        assert "webhook-late is in use" in browser.open(f"{view}/").ids["scenario-on"]
    page = browser.press(browser.open("requests/"), "default")
    assert "/requests/" in page.url
    assert "scenario-on" not in page.ids


def test_switches_are_named_by_what_they_show(sandbox: Sandbox) -> None:
    """The accessible name of a button contains its visible text."""
    sandbox.authorized()
    browser = Dashboard(sandbox)
    html = browser.open("simulate/").answer.text
    switches = re.findall(r'id="(switch-[^"]+)" aria-labelledby="([^"]+)"', html)
    assert len(switches) == 6
    assert all(name in labels.split() for name, labels in switches)
    for page in (html, browser.open("orders/").answer.text):
        for label, text in re.findall(r'<button[^>]* aria-label="([^"]+)"[^>]*>([^<]+)</button>', page):
            assert text in label


def test_projects_show_what_happened_in_them(sandbox: Sandbox, watched: Sandbox, shop: Shop) -> None:
    """The list has the mistakes and the last activity of each project."""
    shop.answer = lambda received: 500
    watched.patch("/control/project/", {"name": "A shop that fails"})
    watched.pay(watched.place(card()))
    watched.settle()
    rows = Dashboard(sandbox).open(f"{sandbox.url}/dashboard/?all=1").answer.text.split("<tr>")
    row = next(row for row in rows if "A shop that fails" in row)
    assert "/mistakes/" in row
    assert "just now" in row
    own = next(row for row in rows if sandbox.project["project_id"] in row)
    assert '<td class="number">0</td><td class="number">0</td>' in own


def test_a_project_is_created_on_the_page(sandbox: Sandbox) -> None:
    """The form creates a project and shows its key once; a wrong name and a foreign form create nothing."""
    browser = Dashboard(sandbox)
    page = browser.open(f"{sandbox.url}/dashboard/?all=1")
    form = page.form_of("mode")
    page = browser.send(form, {"name": "Shop of two", "mode": "live"}, page, 201)
    assert "Shop of two" in page.ids["created"]
    assert page.answer.headers["Cache-Control"] == "no-store"
    key = page.ids["new-key"]
    created = requests.get(f"{sandbox.url}/control/project/", auth=(key, "")).json()
    assert (created["settings"]["name"], created["settings"]["mode"]) == ("Shop of two", "live")
    assert key not in browser.open(f"{sandbox.url}/dashboard/?all=1").answer.text
    before = len(sandbox.http.get(f"{sandbox.url}/control/projects/").json()["items"])
    assert "problems" in browser.send(form, {"name": "x" * 100_000}, page, 400).ids
    browser.send(form, {"name": "y", "token": browser.token}, page, 403)
    assert len(sandbox.http.get(f"{sandbox.url}/control/projects/").json()["items"]) == before


def test_only_the_control_token_creates_projects() -> None:
    """A browser that has signed in with an API key sees no form, and cannot send one."""
    with make_server(control_token="a-control-token", seed=1) as server:
        bearer = {"Authorization": "Bearer a-control-token"}
        project = requests.post(f"{server.url}/control/projects/", json={}, headers=bearer).json()
        for secret, may_create in ((project["api_key"], False), ("a-control-token", True)):
            session = requests.Session()
            session.headers.update(HTML)
            session.post(
                f"{server.url}/dashboard/sign-in/", data={"secret": secret}, headers={"Origin": server.url}
            )
            page = Page(session.get(f"{server.url}/dashboard/?all=1"))
            assert ("new-project" in page.ids) is may_create
            answer = session.post(
                f"{server.url}/dashboard/", data={"name": "x"}, headers={"Origin": server.url}
            )
            assert answer.status_code == 403


def test_a_first_payment_without_an_address_is_no_mistake(sandbox: Sandbox, shop: Shop) -> None:
    """The first page counts no mistake and asks for the address; delivering sets the address."""
    browser = Dashboard(sandbox)
    sandbox.pay(sandbox.place(card()))
    page = browser.open("orders/")
    assert "triage" not in page.ids
    assert page.ids["steps"].split("○")[0].count("✓") == 2, "the step that needs a shop is the last"
    assert "still to do" in page.ids["steps"]
    assert "sent no webhook" in browser.open("mistakes/").ids["finding"]
    assert page.ids["deliver-all"] == "Set, and deliver 2 unsent webhooks"
    address = page.form_of("webhook_url-sent")
    address.action = f"{browser.base}requests/deliver/"
    page = browser.send(address, {"webhook_url": shop.url}, page)
    assert page.ids["notice"].startswith("Sent 2 webhooks. New webhooks will go to the same address.")
    assert sandbox.get("/control/project/").json()["settings"]["webhook_url"] == shop.url
    assert "first-payment" not in browser.open("orders/").ids


def test_a_second_payment_without_an_address_is_one(sandbox: Sandbox) -> None:
    """With a second payment, the shop exists, and the missing address costs money."""
    for _ in range(2):
        sandbox.pay(sandbox.place(card()))
    page = Dashboard(sandbox).open("orders/")
    assert "sent no webhook" in page.ids["triage"]
    assert "first-payment" not in page.ids


@pytest.mark.parametrize(("view", "test_id"), [("orders", "newer-orders"), ("requests", "newer-requests")])
def test_a_list_stays_where_it_is_read(sandbox: Sandbox, view: str, test_id: str) -> None:
    """With its first row in the query, a list counts newer rows above it; a row that is gone is ignored."""
    sandbox.place(card(), merchant_order_id="S-1")
    browser = Dashboard(sandbox)
    top = re.search(r'data-top="([^"]+)"', browser.open(f"{view}/").answer.text)
    assert top is not None
    for number in (2, 3):
        sandbox.place(card(), merchant_order_id=f"S-{number}")
    page = browser.open(f"{view}/?top={top[1]}")
    assert "2 new" in page.ids[test_id]
    assert "S-1" in page.ids[view]
    assert "S-2" not in page.ids[view]
    assert "S-3" in browser.open(f"{view}/?top=gone").ids[view]


def test_a_group_of_mistakes_has_one_action(watched: Sandbox, shop: Shop) -> None:
    """Each open group has one button, and a dead webhook's evidence is folded."""
    shop.answer = lambda received: 500
    watched.pay(watched.place(card()))
    watched.settle()
    watched.advance("P1D")
    page = Dashboard(watched).open("mistakes/")
    articles = page.answer.text.split("<article")[1:]
    is_open = ["finding hint" not in article for article in articles]
    assert any(is_open)
    assert [article.count('data-testid="do"') for article in articles] == [int(each) for each in is_open]
    assert "17 more" in page.ids["more-evidence"]
    text = watched.get("/control/review/", headers={"Accept": "text/plain"}).text
    assert "and 16 more, until" in text
