"""What a server counts against a quota does not depend on which server has written it (SET-08)."""

from payment_sandbox.projects.quotas import Quotas, Usage
from payment_sandbox.serving.server import Server
from tests.cluster.conftest import Company
from tests.support.driver import Sandbox, by, card
from tests.support.postgres import needs_postgres

pytestmark = needs_postgres

QUOTAS = Quotas(total_bytes=10_000_000)


def _usage(server: Server, sandbox: Sandbox) -> Usage:
    project = server.registry.find_by_id(sandbox.project["project_id"])
    assert project is not None
    assert project.account is not None
    return project.account.usage


def test_what_another_server_has_written_counts_like_what_was_written_here(company: Company) -> None:
    """Orders, their agenda, and what was chosen: at the writer, a follower, and a server that loads it all."""
    writer, follower = (company.begin(quotas=QUOTAS) for _ in range(2))
    sandbox = Sandbox(writer, clock="frozen@2027-01-01T12:00:00Z")
    empty = _usage(follower, sandbox)
    for _ in range(3):
        sandbox.place(card(), expiration_period="P1D")
    sandbox.place(by("bank-transfer"))
    assert _usage(follower, sandbox) == _usage(writer, sandbox) != empty
    sandbox.patch("/control/settings/", {"aliases": {"my-button": "credit-card"}})
    assert _usage(follower, sandbox) == _usage(writer, sandbox)
    sandbox.post("/control/clock/advance/", {"by": "P2D"})  # most of the agenda is done
    assert _usage(follower, sandbox) == _usage(writer, sandbox)
    assert _usage(company.begin(quotas=QUOTAS), sandbox) == _usage(writer, sandbox)
