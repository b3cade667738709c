"""What surrounds a call to the merchant API, for each place where it can end."""

from typing import Any

import pytest

from tests.support.driver import Sandbox, card

PATH = "/v1/orders/"
BEFORE, AFTER = (
    {"when": {"method": "POST"}, "then": {"status": 503, "phase": phase}} for phase in ("before", "after")
)
ENDINGS: dict[str, tuple[str, str, dict[str, str], dict[str, Any] | None, int]] = {
    # method, path, headers, fault, status
    "the host is foreign": ("POST", PATH, {"Host": "evil.example"}, None, 403),
    "the key is unknown": ("POST", PATH, {"Authorization": "Basic eDp4"}, None, 401),
    "an id is empty": ("POST", f"{PATH}/", {}, None, 404),
    "no route matches": ("POST", "/v1/nothing/", {}, None, 404),
    "no method matches": ("PATCH", PATH, {}, None, 405),
    "an Idempotency-Key is too long": ("POST", PATH, {"Idempotency-Key": "x" * 256}, None, 400),
    "a fault answers instead of the view": ("POST", PATH, {}, BEFORE, 503),
    "a fault loses the answer of the view": ("POST", PATH, {}, AFTER, 503),
    "the ETag is out of date": ("PUT", f"{PATH}{{id}}/", {"If-Match": '"x"'}, None, 412),
    "the view answers": ("POST", PATH, {}, None, 201),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_each_part_around_a_view_runs_if_the_call_has_reached_it(sandbox: Sandbox, ending: str) -> None:
    """A refusal is explained, and journaled once if the project is known; a fault is named if it was begun."""
    method, path, headers, fault, status = ENDINGS[ending]
    existing = sandbox.create().json()
    if fault is not None:
        sandbox.put("/control/faults/", {"faults": [fault]})
    answer = sandbox.http.request(
        method,
        f"{sandbox.url}{path.format(id=existing['id'])}",
        json={"currency": "EUR", "amount": 1295},
        headers=headers,
        auth=None if "Authorization" in headers else (sandbox.key, ""),
    )
    assert answer.status_code == status
    assert ("Sandbox-Explain" in answer.headers) == (status != 201)
    _, *entries = sandbox.get("/control/journal/").json()["items"]
    expected = [] if status in (401, 403) else [(status, fault is not None)]
    assert [(entry["status"], entry["fault"] is not None) for entry in entries] == expected
    orders = sandbox.get("/control/orders/").json()["items"]
    assert len(orders) == (2 if status == 201 or fault is AFTER else 1)


@pytest.mark.rule("SET-59", "SET-60")
@pytest.mark.parametrize("fault", [None, BEFORE, AFTER])
def test_held_webhooks_are_released_wherever_a_call_ends(
    watched: Sandbox, fault: dict[str, Any] | None
) -> None:
    """Whatever ends a call, its webhooks leave, and the project becomes idle."""
    if fault is not None:
        watched.put("/control/faults/", {"faults": [fault]})
    watched.create({"payment_method": "bank-transfer"})
    watched.settle()
    assert len(watched.webhooks()) == (0 if fault is BEFORE else 1)
    assert watched.create(card(), amount=0).status_code in (400, 503)
    watched.settle()
