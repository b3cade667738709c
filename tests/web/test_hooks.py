"""What surrounds a call to the merchant API, for each place where it can end."""

from typing import Any, NamedTuple

import pytest

from tests.support.driver import Sandbox, card

ORDER = {"currency": "EUR", "amount": 1295}
PATH = "/v1/orders/"


class Ending(NamedTuple):
    """A call that ends at some place: what it sends, and what can be seen of it afterwards."""

    method: str = "POST"
    path: str = PATH
    body: Any = ORDER
    headers: dict[str, str] = {}
    fault: dict[str, Any] | None = None
    status: int = 201
    is_explained: bool = False
    is_journaled: bool = True
    orders_made: int = 0
    names_fault: bool = False


def _fault(phase: str) -> dict[str, Any]:
    return {"when": {"method": "POST"}, "then": {"status": 503, "phase": phase}}


REFUSED = Ending(is_explained=True)
ENDINGS = {
    "the host is foreign": REFUSED._replace(headers={"Host": "evil.example"}, status=403, is_journaled=False),
    "the key is unknown": REFUSED._replace(
        headers={"Authorization": "Basic eDp4"}, status=401, is_journaled=False
    ),
    "an id is empty": REFUSED._replace(path="/v1/orders//", status=404),
    "no route matches": REFUSED._replace(path="/v1/nothing/", status=404),
    "no method matches": REFUSED._replace(method="PATCH", path="/v1/orders/", status=405),
    "an Idempotency-Key is too long": REFUSED._replace(headers={"Idempotency-Key": "x" * 256}, status=400),
    "a fault answers instead of the view": REFUSED._replace(
        fault=_fault("before"), status=503, names_fault=True
    ),
    "a fault loses the answer of the view": REFUSED._replace(
        fault=_fault("after"), status=503, orders_made=1, names_fault=True
    ),
    "the ETag is out of date": REFUSED._replace(
        method="PUT", path="/v1/orders/{id}/", headers={"If-Match": '"x"'}, status=412
    ),
    "the view refuses the body": REFUSED._replace(body={"currency": "USD"}, status=400),
    "the view answers": Ending(orders_made=1),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_each_part_around_a_view_runs_if_the_call_has_reached_it(sandbox: Sandbox, ending: Ending) -> None:
    """A refusal is explained, and journaled once if the project is known; a fault is named if it was begun."""
    existing = sandbox.create().json()
    if ending.fault is not None:
        sandbox.put("/control/faults/", {"faults": [ending.fault]})
    before = sandbox.get("/control/journal/?count=1").json()["count"]
    answer = sandbox.http.request(
        ending.method,
        f"{sandbox.url}{ending.path.format(id=existing['id'])}",
        json=ending.body,
        headers=ending.headers,
        auth=None if "Authorization" in ending.headers else (sandbox.key, ""),
    )
    assert answer.status_code == ending.status
    assert ("Sandbox-Explain" in answer.headers) == ending.is_explained
    journal = sandbox.get("/control/journal/").json()["items"]
    assert len(journal) - before == ending.is_journaled
    if ending.is_journaled:
        assert (journal[-1]["status"], journal[-1]["fault"] is not None) == (
            ending.status,
            ending.names_fault,
        )
    assert len(sandbox.get("/control/orders/").json()["items"]) == 1 + ending.orders_made


@pytest.mark.rule("SET-59", "SET-60")
@pytest.mark.parametrize("phase", [None, "before", "after"])
def test_held_webhooks_are_released_wherever_a_call_ends(watched: Sandbox, phase: str | None) -> None:
    """Whatever ends a call, its webhooks leave, and the project becomes idle."""
    if phase is not None:
        watched.put("/control/faults/", {"faults": [_fault(phase)]})
    watched.create({"payment_method": "bank-transfer"})
    watched.settle()
    assert len(watched.webhooks()) == (0 if phase == "before" else 1)
    assert watched.create(card(), amount=0).status_code in (400, 503)
    watched.settle()
