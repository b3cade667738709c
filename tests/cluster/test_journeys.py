"""All journeys with two servers on one database; each request goes to a random server."""

import os
import subprocess
import sys

import pytest

from tests.support.documentation import ROOT
from tests.support.postgres import Postgres

SUITES = ("tests/journeys", "tests/web/control/test_faults.py")


@pytest.mark.prove
def test_every_journey_passes_with_two_servers(postgresql: Postgres) -> None:
    """The journeys pass with any distribution of the requests to the servers."""
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *SUITES],
        cwd=ROOT,
        env={**os.environ, "SANDBOX_TEST_STATE": postgresql.new_database(), "SANDBOX_TEST_SERVERS": "2"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout[-3000:]
    (sent,) = (line for line in completed.stdout.splitlines() if "requests by server:" in line)
    assert sent.count("http://127.0.0.1:") == 2
