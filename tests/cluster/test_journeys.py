"""All journeys with two servers on one database; each request goes to a random server."""

import pytest

from tests.support.commands import run_tests
from tests.support.postgres import Postgres

SUITES = ("tests/journeys", "tests/web/control/test_faults.py")


@pytest.mark.prove
def test_every_journey_passes_with_two_servers(postgresql: Postgres) -> None:
    """The journeys pass with any distribution of the requests to the servers."""
    state = postgresql.new_database()
    printed = run_tests("-s", *SUITES, SANDBOX_TEST_STATE=state, SANDBOX_TEST_SERVERS="2")
    (sent,) = (line for line in printed.splitlines() if "requests by server:" in line)
    assert sent.count("http://127.0.0.1:") == 2
