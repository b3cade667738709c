"""Servers that share a database agree with the model; calls go to them in turn."""

import pytest

from tests.cluster.conftest import Company
from tests.model.walking import over_http, walk


@pytest.mark.parametrize("examples", [3, pytest.param(30, marks=pytest.mark.prove)])
def test_random_calls_at_two_servers_agree(company: Company, examples: int) -> None:
    """Two servers that get random calls in turn agree with the model."""
    walk(over_http(*(server.local_url for server in company.servers)), examples, steps=30)
