"""Every effect of a fault is noticed by the client."""

import json
from contextlib import closing

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.scenarios.effects import REQUEST_EFFECTS, RequestEffect
from payment_sandbox.serving.server import Server
from tests.support.servers import make_server

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}
FAST_VALUES = {"hang": 0.05, "rate_limit": "1/P1D"}


def outcome(server: Server) -> object:
    """Return the response of a creation, or the exception of its client."""
    try:
        answer = requests.post(f"{server.url}/v1/orders/", json=ORDER, auth=(FIRST_API_KEY, ""))
        return answer.status_code, sorted(answer.json())
    except requests.RequestException as error:
        return type(error)


@pytest.mark.parametrize("effect", REQUEST_EFFECTS, ids=lambda effect: str(effect.key))
def test_a_client_notices_every_request_effect(effect: type[RequestEffect]) -> None:
    """Each request effect changes the response, and the journal shows it."""
    value = FAST_VALUES.get(
        effect.key, json.loads(effect.example) if effect.example[0] != "1" else effect.example
    )
    with make_server(clock="frozen") as server, closing(SandboxClient(server.url, FIRST_API_KEY)) as client:
        normal = outcome(server)
        client.faults([{"when": {"method": "POST"}, "then": {effect.key: value}}])
        outcomes = [outcome(server), outcome(server)]
        assert outcomes[-1] != normal
        entry = client.journal()[-1]
        assert entry["fault"] == {effect.key: value}
