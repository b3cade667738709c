"""What several servers share goes with a project, too."""

import gc

from tests.cluster.conftest import Company
from tests.support.driver import Sandbox
from tests.support.reachable import mentions
from tests.support.shop import Shop
from tests.support.uses import look, trade, watch


def test_no_server_mentions_a_deleted_project(company: Company, shop: Shop) -> None:
    """Whichever had it, or was asked for it."""
    first, other = company.servers[:2]
    sandbox = Sandbox(first, webhook_url=shop.url)
    for use in (trade, look, watch):
        use(sandbox)
    project_id = sandbox.project["project_id"]
    elsewhere = company.at(other, sandbox)
    assert elsewhere.get("/control/orders/").status_code == 200
    assert any(mentions(project_id, *company.servers)), "the walk sees what is there"
    sandbox.delete("/control/project/")
    for asked in (sandbox, elsewhere):
        asked.get("/health/")  # a connection has its last response until the next one
    gc.collect()
    assert list(mentions(project_id, *company.servers)) == []
