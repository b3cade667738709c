"""A server describes its health and its API to callers without a key."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from jsonschema import Draft202012Validator

from payment_sandbox.serving.server import Server
from payment_sandbox.version import __version__
from payment_sandbox.web.routes import described_routes
from tests.support.described import description
from tests.support.driver import Sandbox


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each described call with its method, path and operation."""
    for path, by_method in description()["paths"].items():
        for method, operation in by_method.items():
            yield method.upper(), path, operation


@pytest.mark.rule("CTL-05")
def test_health_needs_no_key(server: Server) -> None:
    """The health endpoint answers without a key, because fixtures poll it."""
    answer = requests.get(f"{server.url}/health/")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "version": __version__})


@pytest.mark.rule("CTL-28")
def test_the_description_has_every_route(server: Server) -> None:
    """It is OpenAPI 3.1; every ``$ref`` resolves, even in examples, because mock servers resolve those, too."""
    document = requests.get(f"{server.url}/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    described_paths = [each.path for each in described_routes(server.app) if each.facts.group != "dashboard"]
    assert {path.replace("<", "{").replace(">", "}") for path in described_paths} == document["paths"].keys()

    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from (value for key, value in node.items() if key == "$ref")
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            yield from references(inner)

    for reference in set(references(document)):
        node = document
        for key in reference.removeprefix("#/").split("/"):
            assert key in node, reference
            node = node[key]


@pytest.mark.prove
def test_the_description_is_valid(server: Server) -> None:
    """The description is valid OpenAPI 3.1."""
    from openapi_spec_validator import OpenAPIV31SpecValidator

    OpenAPIV31SpecValidator(requests.get(f"{server.url}/openapi.json").json()).validate()


def test_every_example_of_the_description_is_valid(sandbox: Sandbox) -> None:
    """The server accepts each example body on an order whose state allows the call."""
    examples = {
        (method, path): operation["requestBody"]["content"]["application/json"]["example"]
        for method, path, operation in operations()
        if "requestBody" in operation and "/transactions/" not in path
    }
    order = sandbox.post("/v1/orders/", examples["POST", "/v1/orders/"])
    assert order.status_code == 201
    assert "Sandbox-Ignored-Fields" not in order.headers
    for (method, path), example in examples.items():
        address = path.replace("{order_id}", order.json()["id"]).replace("{qr_id}", "x")
        answer = sandbox.call(method, address, example)
        assert answer.status_code != 400, (path, answer.text)


def test_every_call_is_described_with_examples() -> None:
    """Each JSON response has a named schema, and one that fits its example; each query parameter is explained."""
    components = {"components": description()["components"]}
    for method, path, operation in operations():
        success = next(status for status in operation["responses"] if status < "400")
        for status, answer in operation["responses"].items():
            content = answer.get("content", {}).get("application/json")
            if content is not None:
                schema = content["schema"]
                assert "$ref" in schema or "$ref" in schema.get("items", {}), (method, path, status)
                if status == success and path.startswith(("/v1/", "/control/", "/health/")):
                    Draft202012Validator({**schema, **components}).validate(content["example"])
        body = operation.get("requestBody", {})
        if body.get("required"):
            assert "example" in body["content"]["application/json"], (method, path)
        for parameter in operation["parameters"]:
            assert parameter["in"] != "query" or parameter["description"], (method, path, parameter)


def test_generators_for_typed_languages_can_read_the_description() -> None:
    """No schema is the constructor of another in Go, or differs only in case; long integers name their format."""
    schemas = description()["components"]["schemas"]
    assert [name for name in schemas if f"New{name}" in schemas] == []
    assert len({re.sub("[^a-z0-9]", "", name.casefold()) for name in schemas}) == len(schemas)
    assert schemas["SettingsRequest"]["properties"]["seed"]["format"] == "int64"
    assert schemas["OrderRequest"]["properties"]["amount"]["format"] == "int64"
    assert "format" not in schemas["OrderLine"]["properties"]["vat_percentage"]
    assert "507" in description()["paths"]["/v1/orders/"]["post"]["responses"], "for a full disk"
