"""The usage that counts against a quota is the same on every server (SET-08)."""

from payment_sandbox.projects.quotas import Quotas, Usage
from payment_sandbox.serving.server import Server
from tests.cluster.conftest import Company
from tests.support.driver import Sandbox, by, card

QUOTAS = Quotas(total_bytes=10_000_000)


def _usage(server: Server, sandbox: Sandbox) -> Usage:
    project = server.registry.find_by_id(sandbox.project["project_id"])
    assert project is not None
    assert project.account is not None
    return project.account.usage


def test_all_servers_count_the_same_usage(company: Company) -> None:
    """The writer, a follower and a newly started server count the same usage."""
    writer, follower = (company.start_server(quotas=QUOTAS) for _ in range(2))
    sandbox = Sandbox(writer, clock="frozen@2027-01-01T12:00:00Z")
    empty = _usage(follower, sandbox)
    for _ in range(3):
        sandbox.place(card(), expiration_period="P1D")
    sandbox.place(by("bank-transfer"))
    assert _usage(follower, sandbox) == _usage(writer, sandbox) != empty
    sandbox.patch("/control/settings/", {"aliases": {"my-button": "credit-card"}})
    assert _usage(follower, sandbox) == _usage(writer, sandbox)
    sandbox.post("/control/clock/advance/", {"by": "P2D"})  # most events of the agenda have run
    assert _usage(follower, sandbox) == _usage(writer, sandbox)
    assert _usage(company.start_server(quotas=QUOTAS), sandbox) == _usage(writer, sandbox)
