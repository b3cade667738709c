"""All journeys and the tests of the control API on a database, with one server and with two."""

import pytest

from tests.support.commands import run_tests
from tests.support.postgres import Postgres


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("suite", ["tests/journeys", "tests/web/control"])
@pytest.mark.parametrize("servers", [1, 2])
def test_every_store_passes_the_same_tests(postgresql: Postgres, suite: str, servers: int) -> None:
    """The tests pass on a database, with any distribution of the requests to the servers."""
    options = ["-s", "-p", "no:xdist", suite]
    state = postgresql.new_database()
    printed = run_tests(*options, SANDBOX_TEST_STATE=state, SANDBOX_TEST_SERVERS=str(servers))
    sent = [line for line in printed.splitlines() if "requests by server:" in line]
    assert sum(line.count("http://127.0.0.1:") for line in sent) == (servers if servers > 1 else 0)
