"""A new view of the dashboard needs an entry in ``VIEW_TITLES``, a route, a template and documentation."""

from pathlib import Path

import pytest

from tests.support.changed_package import ChangedCheckout

VIEW = '''"""The prices that a shop asks for."""

from werkzeug import Response

from payment_sandbox.web.call import Call
from payment_sandbox.ui.dashboard.frame import VIEW_FACTS, dashboard, enter, show
from payment_sandbox.web.routes import route


@route(dashboard, "GET", "/dashboard/<project_id>/prices/", **VIEW_FACTS)
def get_prices_view(call: Call, project_id: str) -> Response:
    """Show the amounts of the orders."""
    project = enter(call, project_id)
    return show(call, "prices", project, "prices", orders=list(project.epoch.store.orders_newest_first()))
'''
TEMPLATE = """{% extends "dashboard/frame.html" %}
{% block main %}
<section class="card"><h1>Prices</h1><ul id="prices" data-live>
  {%- for order in orders %}<li>{{ order.amount_cents | euros }}</li>{% endfor %}</ul></section>
{% endblock %}
"""
SENTENCE = "\n**Price list** shows the amounts of all orders.\n"
TESTS = (
    "tests/ui/dashboard/test_orders.py::test_every_view_shows_empty_and_busy_projects",
    "tests/howto/test_docs_complete.py::test_every_view_of_the_dashboard_is_explained_by_hand",
)
UNEXPLAINED = "test_docs_complete.py::test_every_view_of_the_dashboard_is_explained_by_hand"
MISSING_VIEW = "test_orders.py::test_every_view_shows_empty_and_busy_projects"
PROGRAM = """
import requests
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import build

with build(ServerConfig()) as server:
    key = ("sandbox-key", "")
    requests.post(f"{server.url}/v1/orders/", json={"currency": "EUR", "amount": 1234}, auth=key)
    project = requests.get(f"{server.url}/control/project/", auth=key).json()["project_id"]

    def page(name):
        answer = requests.get(f"{server.url}/dashboard/{project}/{name}/")
        assert answer.status_code == 200, answer.text
        return answer

    text = page("prices").text
    assert "<title>Price list" in text and "12.34" in text and 'id="prices" data-live' in text, text
    assert "Content-Security-Policy" in page("prices").headers
    assert 'data-testid="nav-prices">Price list' in page("orders").text
    assert "/prices/" not in requests.get(f"{server.url}/openapi.json").text
    assert "Price list" in requests.get(f"{server.url}/docs/dashboard/").text
    missing = requests.get(f"{server.url}/dashboard/no-such-project/prices/")
    assert missing.status_code == 404
with build(ServerConfig(control_token="only-for-tests")) as server:
    key = ("sandbox-key", "")
    project = requests.get(f"{server.url}/control/project/", auth=key).json()["project_id"]
    path = f"/dashboard/{project}/prices/"
    led = requests.get(f"{server.url}{path}", allow_redirects=False)
    assert led.status_code == 303 and "/sign-in/" in led.headers["Location"], led.headers
print("shown")
"""


@pytest.mark.prove
def test_a_new_view_is_everywhere(tmp_path: Path) -> None:
    """The view is in the menu, protected, live and documented; failing tests name each missing part."""
    checkout = ChangedCheckout(tmp_path)
    checkout.package.insert(
        "ui/dashboard/frame.py", '    "settings": "Settings",\n', '    "prices": "Price list",\n'
    )
    assert checkout.failing(*TESTS) == {MISSING_VIEW, UNEXPLAINED}
    checkout.package.add("ui/dashboard/prices.py", VIEW)
    checkout.package.insert("ui/dashboard/__init__.py", "    requests,\n", "    prices,\n")
    checkout.package.insert("ui/dashboard/__init__.py", '    "requests",\n', '    "prices",\n')
    checkout.package.add("ui/dashboard/templates/dashboard/prices.html", TEMPLATE)
    assert checkout.failing(*TESTS) == {UNEXPLAINED}
    checkout.package.append("ui/docs/pages/dashboard.md", SENTENCE)
    assert checkout.failing(*TESTS) == set()
    assert checkout.run(PROGRAM) == "shown\n"
