"""What a server says of itself without a key: that it is well, and what it can do."""

import pytest
import requests

from payment_sandbox.serving.server import Server
from payment_sandbox.version import __version__
from tests.support.driver import Sandbox


@pytest.mark.rule("CTL-05")
def test_health_needs_no_key(server: Server) -> None:
    """Fixtures wait for it."""
    answer = requests.get(f"{server.url}/health/", timeout=5)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "version": __version__})


@pytest.mark.rule("CTL-28")
def test_the_description_is_served_and_valid(server: Server) -> None:
    """OpenAPI 3.1 of both APIs, with every route that there is."""
    from openapi_spec_validator import OpenAPIV31SpecValidator

    described = requests.get(f"{server.url}/openapi.json", timeout=10).json()
    assert described["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(described).validate()
    routes = {rule.rule.replace("<", "{").replace(">", "}") for rule in server.app.url_map.iter_rules()}
    assert routes - described["paths"].keys() == {"/openapi.json"}


def test_every_example_of_the_description_is_valid(sandbox: Sandbox) -> None:
    """The examples do what they show, each on an order that allows it."""
    described = sandbox.get("/openapi.json").json()
    example = described["paths"]["/v1/orders/"]["post"]["requestBody"]["content"]["application/json"][
        "example"
    ]
    order = sandbox.post("/v1/orders/", example)
    assert order.status_code == 201
    assert "Sandbox-Ignored-Fields" not in order.headers
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if "requestBody" in operation and "/transactions/" not in path:
                body = operation["requestBody"]["content"]["application/json"]["example"]
                here = path.replace("{order_id}", order.json()["id"]).replace("{qr_id}", "x")
                answer = sandbox.call(method.upper(), here, body)
                assert answer.status_code != 400, (path, answer.text)


def test_the_keys_of_an_order_are_those_of_its_description() -> None:
    """What an update takes as read-only is what the description promises, no more and no less."""
    from payment_sandbox.web.answers.records import ORDER_KEYS
    from payment_sandbox.web.merchant.shapes import OrderShape

    assert OrderShape().fields.keys() == ORDER_KEYS
