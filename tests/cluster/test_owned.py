"""A deleted project leaves nothing behind on any server."""

import gc

from tests.cluster.conftest import Company
from tests.support.driver import Sandbox
from tests.support.reachable import mentions
from tests.support.shop import Shop
from tests.support.uses import look, trade, watch


def test_no_server_mentions_a_deleted_project(company: Company, shop: Shop) -> None:
    """No server mentions a deleted project, neither its creator nor another server that has used it."""
    first, other = company.servers[:2]
    sandbox = Sandbox(first, webhook_url=shop.url)
    for use in (trade, look, watch):
        use(sandbox)
    project_id = sandbox.project["project_id"]
    at_other = company.client_at(other, sandbox)
    assert at_other.get("/control/orders/").status_code == 200
    assert any(mentions(project_id, *company.servers)), "the walk must find the project before its deletion"
    sandbox.delete("/control/project/")
    assert (
        at_other.get("/control/orders/").status_code == 401
    )  # a server notices the deletion of an idle project
    for each in (sandbox, at_other):
        each.get("/health/")  # a connection keeps its last response until the next one
    gc.collect()
    assert list(mentions(project_id, *company.servers)) == []
