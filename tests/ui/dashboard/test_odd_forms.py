"""Invalid forms of the dashboard are refused without effect."""

import pytest

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card

ODD = [
    ("orders/{id}/act/", {"action": "customer pay", "card": "bogus"}, 400),
    ("orders/{id}/act/", {"action": "customer fly"}, 400),
    ("orders/{id}/act/", {"action": ""}, 400),
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


@pytest.mark.parametrize(("path", "fields", "status"), ODD)
def test_odd_forms_are_refused(sandbox: Sandbox, path: str, fields: dict[str, str], status: int) -> None:
    """An invalid form gets an error page, and the state is unchanged."""
    order = sandbox.place(card(capture_mode="manual"))
    dashboard = Dashboard(sandbox)
    token = dashboard.token
    before = sandbox.get("/control/state/").json()
    answer = dashboard.http.post(
        f"{dashboard.base}{path.format(id=order['id'])}",
        data={"token": token, **fields},
        headers={"Origin": sandbox.url},
    )
    assert answer.status_code == status, answer.text[:500]
    assert "<main" in answer.text
    assert sandbox.get("/control/state/").json() == before


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//[", "/dashboard/x\r\nSet-Cookie: a=b", "http://[", "/dashboard/\x7f"]
)
def test_invalid_return_paths_lead_to_the_orders(sandbox: Sandbox, back: str) -> None:
    """An invalid return path leads to the list of orders."""
    dashboard = Dashboard(sandbox)
    token = dashboard.token
    answer = dashboard.http.post(
        f"{dashboard.base}clock/",
        data={"token": token, "by": "PT1M", "back": back},
        headers={"Origin": sandbox.url},
        allow_redirects=False,
    )
    assert answer.status_code == 303
    assert answer.headers["Location"].partition("?")[0].endswith("/orders/")
    page = dashboard.http.get(f"{sandbox.url}/dashboard/sign-in/", params={"next": back})
    assert page.status_code == 200


def test_a_fault_for_one_call_is_off_once_it_was_applied(sandbox: Sandbox) -> None:
    """A fault for one call is used up; switching another fault does not arm it again."""
    dashboard = Dashboard(sandbox)
    dashboard.press(dashboard.open("simulate/"), "unavailable")
    assert [sandbox.create(card()).status_code for _ in range(2)] == [503, 201]
    page = dashboard.open("simulate/")
    assert page.ids["switch-unavailable"] == "off"
    page = dashboard.press(page, "webhook-late")
    assert sandbox.create(card()).status_code == 201
    page = dashboard.press(page, "unavailable")
    assert page.ids["switch-unavailable"] == "on"
    assert [sandbox.create(card()).status_code for _ in range(2)] == [503, 201]
