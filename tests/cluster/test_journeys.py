"""The journeys and the tests of the control API on a database, with two servers, and a sample with one."""

import pytest

from tests.support.commands import run_tests
from tests.support.postgres import Postgres

SUITES = ("tests/journeys", "tests/web/control")
OPTIONS = ("-s", "-p", "no:xdist")


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("suite", SUITES)
def test_two_servers_pass_the_tests_of_one(postgresql: Postgres, suite: str) -> None:
    """The tests pass on a database, with any distribution of the requests to the servers."""
    state = postgresql.new_database()
    printed = run_tests(*OPTIONS, suite, SANDBOX_TEST_STATE=state, SANDBOX_TEST_SERVERS="2")
    sent = [line for line in printed.splitlines() if "requests by server:" in line]
    assert sum(line.count("http://127.0.0.1:") for line in sent) == 2


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_one_server_passes_a_sample(postgresql: Postgres) -> None:
    """One server has nothing that two have not, except that no other server changes its projects."""
    run_tests(*OPTIONS, *SUITES, SANDBOX_TEST_STATE=postgresql.new_database(), SANDBOX_TEST_SAMPLE="10")
