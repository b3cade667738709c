"""What a new user meets: first steps, the webhook address, projects and settings."""

import requests

from tests.support.dashboard import Dashboard, run_in_shell
from tests.support.driver import Sandbox, card
from tests.support.payer import HTML, Page
from tests.support.ports import free_port
from tests.support.servers import make_server
from tests.support.shop import Shop


def test_the_first_project_shows_its_well_known_key() -> None:
    """Both commands of a new server's first page work as pasted, without any further knowledge."""
    with make_server() as server:
        page = Page(requests.get(f"{server.url}/", headers=HTML))
        created = run_in_shell(f"{page.ids['key']}\n{page.ids['first-call']} -sS --fail")
        assert '"amount": 1295' in created.replace('":', '": ').replace('":  ', '": ')


def test_the_first_page_leads_to_the_orders(sandbox: Sandbox) -> None:
    """The root redirects browsers to the dashboard and gives other clients working links."""
    browser = Dashboard(sandbox)
    page = browser.open(f"{sandbox.url}/")
    assert page.url.endswith("/dashboard/"), "this server has many projects"
    assert {browser.base.removeprefix(sandbox.url) + "orders/", "/docs/"} <= set(page.links)
    answer = sandbox.get("/")
    assert answer.json().keys() == {"dashboard", "documentation", "openapi", "health"}
    assert [requests.get(link).status_code for link in answer.json().values()] == [200] * 4
    assert requests.head(sandbox.url).status_code == 200


def test_a_newcomer_pays_a_test_order(sandbox: Sandbox) -> None:
    """A button creates a test order, whose page links to its payment page."""
    browser = Dashboard(sandbox)
    empty = browser.open()
    assert "empty" in empty.ids
    assert empty.ids["steps"].count("still to do") == 3
    assert "show-key" not in empty.ids, "the key of this project is not known to the page"
    form = next(form for form in empty.forms if form.action.endswith("orders/") and "token" in form.fields)
    page = browser.send(form, {}, empty)
    assert "12.95" in page.text
    (paying,) = {link for link in page.links if link.startswith("/pay/")}
    order_id = page.url.rstrip("/").rpartition("/")[2]
    assert order_id in paying
    assert "creates a test order" in page.text
    assert sandbox.get("/control/journal/?count=1").json() == {"count": 0}, "the shop made no request"
    assert sandbox.read(order_id)["status"] == "new"


def test_a_first_payment_without_an_address_is_no_mistake(sandbox: Sandbox, shop: Shop) -> None:
    """A second one is; a valid address can be set where it is missing, and delivers what was not sent."""
    browser = Dashboard(sandbox)
    order = sandbox.pay(sandbox.place(card()))
    page = browser.open("orders/")
    assert "triage" not in page.ids
    assert page.ids["steps"].split("○")[0].count("✓") == 2, "the step that needs a shop is the last"
    assert "nobody-told" in browser.open(f"orders/{order['id']}/").ids
    sandbox.pay(sandbox.place(card()))
    page = browser.open("orders/")
    assert "sent no webhook" in page.ids["triage"]
    assert "first-payment" not in page.ids
    page = browser.open("requests/")
    form = page.form_of("webhook_url")
    assert "error-webhook_url" in browser.send(form, {"webhook_url": "localhost"}, page, 400).ids
    form.action = f"{browser.base}requests/deliver/"
    page = browser.send(form, {"webhook_url": shop.url}, page)
    assert page.ids["notice"].startswith("Sent 4 webhooks. New webhooks will go to the same address.")
    assert "no-address" not in page.ids
    assert len(shop.received) == 4
    assert sandbox.get("/control/project/").json()["settings"]["webhook_url"] == shop.url


def test_a_test_of_the_webhook_address(sandbox: Sandbox, shop: Shop) -> None:
    """The notice shows the shop's response, the reason for its absence, or the fault that withheld the webhook."""
    browser = Dashboard(sandbox)
    assert "send-a-test" not in browser.open("requests/").ids
    shop.answer = lambda received: 204
    for address, fault, message in (
        (shop.url, [], "your shop answered 204 in "),
        (f"http://127.0.0.1:{free_port()}/", [], "no server listens"),
        (shop.url, [{"then": {"drop": True}}], "your shop received no webhook: lost (fault)."),
    ):
        sandbox.put("/control/faults/", {"webhooks": fault})
        sandbox.patch("/control/project/", {"webhook_url": address})
        page = browser.open("requests/")
        assert message in browser.send(page.form_to("/test/"), {}, page).ids["notice"]


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
