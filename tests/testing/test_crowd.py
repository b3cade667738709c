"""Many workers share one running server; ``CROWD_TESTS=3200`` runs 200 tests on each of sixteen workers."""

import os
from pathlib import Path

import pytest

from tests.support.servers import make_server
from tests.support.suites import passed, suite

TESTS = int(os.environ.get("CROWD_TESTS", "320"))
CROWD = """
import os
from pathlib import Path


@pytest.mark.parametrize("number", range(int(os.environ["CROWD_COUNT"])))
def test_alone_in_the_crowd(payment_sandbox, number):
    paid, unpaid = place(payment_sandbox, amount=1000 + number), place(payment_sandbox, amount=1)
    order_files = Path("orders")
    order_files.mkdir(exist_ok=True)
    (order_files / str(os.getpid())).write_text(paid["id"])
    payment_sandbox.act(paid["id"])
    before = payment_sandbox.clock.now
    advance = payment_sandbox.clock.advance("PT60M")
    assert (payment_sandbox.clock.now - before).total_seconds() == 3600
    assert {event["order_id"] for event in advance.events} == {unpaid["id"]}
    assert payment_sandbox.client.order(paid["id"])["amount"] == 1000 + number
    assert payment_sandbox.client.order(paid["id"])["status"] == "completed"
    assert payment_sandbox.client.order(unpaid["id"])["status"] == "expired"
    assert {entry["order_id"] for entry in payment_sandbox.client.journal()} == {paid["id"], unpaid["id"]}
    for other in sorted(order_files.iterdir())[:4]:
        foreign = other.read_text()
        if foreign and foreign != paid["id"]:
            url = f"{payment_sandbox.base_url}/v1/orders/{foreign}/"
            assert payment_sandbox.session.get(url).status_code == 404
"""


@pytest.mark.prove
def test_sixteen_workers_share_a_server_and_never_meet(tmp_path: Path) -> None:
    """Each test has its own project, clock and orders, and cannot read those of other tests."""
    with make_server(freeze_memory=True) as server:
        result = suite(tmp_path, CROWD, "-n", "16", SANDBOX_URL=server.url, CROWD_COUNT=str(TESTS))
        passed(result, TESTS)
        assert len(server.registry.all()) == 1, "the projects of all tests are deleted"
