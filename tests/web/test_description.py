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
from tests.support.driver import Sandbox, card


@pytest.mark.rule("CTL-05")
def test_health_needs_no_key(server: Server) -> None:
    """The health endpoint answers without a key, because fixtures poll it."""
    answer = requests.get(f"{server.url}/health/")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "version": __version__})


@pytest.mark.rule("CTL-28")
def test_the_description_is_served_and_valid(server: Server) -> None:
    """The description is valid OpenAPI 3.1 and has every route except those of the dashboard."""
    from openapi_spec_validator import OpenAPIV31SpecValidator

    described = requests.get(f"{server.url}/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(described).validate()
    described_paths = [each.path for each in described_routes(server.app) if each.facts.group != "dashboard"]
    routes = {path.replace("<", "{").replace(">", "}") for path in described_paths}
    assert routes == described["paths"].keys()


def test_every_example_of_the_description_is_valid(sandbox: Sandbox) -> None:
    """The server accepts each example body on an order whose state allows the call."""
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
                concrete_path = path.replace("{order_id}", order.json()["id"]).replace("{qr_id}", "x")
                answer = sandbox.call(method.upper(), concrete_path, body)
                assert answer.status_code != 400, (path, answer.text)


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Return each described call with its method, path and operation."""
    for path, by_method in description()["paths"].items():
        for method, operation in by_method.items():
            yield method.upper(), path, operation


def test_every_json_answer_has_a_real_shape() -> None:
    """Each JSON response refers to a named schema."""
    for method, path, operation in operations():
        for status, answer in operation["responses"].items():
            if "application/json" in answer.get("content", {}):
                schema = answer.get("content", {})["application/json"]["schema"]
                assert "$ref" in schema or "$ref" in schema.get("items", {}), (method, path, status)


def test_every_call_has_an_example_that_fits_its_shape() -> None:
    """Each JSON response and each required body has an example; the response's fits its schema."""
    components = {"components": description()["components"]}
    for method, path, operation in operations():
        success = next(status for status in operation["responses"] if status < "400")
        content = operation["responses"][success]["content"].get("application/json")
        if content is not None and path.startswith(("/v1/", "/control/", "/health/")):
            Draft202012Validator({**content["schema"], **components}).validate(content["example"])
        body = operation.get("requestBody", {})
        if body.get("required"):
            assert "example" in body["content"]["application/json"], (method, path)


def test_every_query_parameter_is_described() -> None:
    """Each query parameter has a description, and its allowed values where they are limited."""
    schemas = {}
    for method, path, operation in operations():
        for parameter in operation["parameters"]:
            if parameter["in"] == "query":
                assert parameter["description"], (method, path, parameter)
                schemas[path, parameter["name"]] = parameter["schema"]
    assert schemas["/v1/orders/{order_id}/", "fields[]"]["items"]["enum"] == [
        "order_line_details",
        "amount_details",
    ]
    assert "completed" in schemas["/control/wait/", "status"]["enum"]


def test_every_reference_is_in_the_document(sandbox: Sandbox) -> None:
    """Every ``$ref`` resolves, even in examples, because mock servers and generators resolve those, too."""
    document = sandbox.get("/openapi.json").json()

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


def test_responses_without_json_are_described() -> None:
    """Redirects of pages and unchanged orders (304) are described."""
    paths = description()["paths"]
    assert "304" in paths["/v1/orders/{order_id}/"]["get"]["responses"]
    pages = [
        operation for method, path, operation in operations() if path.startswith("/pay/") and method == "GET"
    ]
    html = [page for page in pages if "text/html" in page["responses"]["200"]["content"]]
    assert html
    assert all("303" in page["responses"] for page in html)


@pytest.mark.rule("SET-15")
def test_null_is_described_where_it_counts_as_absent(sandbox: Sandbox) -> None:
    """A customer's fields accept null at every level."""
    schemas = description()["components"]["schemas"]
    for name in ("CustomerRequest", "AddressRequest"):
        validator = Draft202012Validator({"components": {"schemas": schemas}, **schemas[name]})
        nulls = dict.fromkeys(schemas[name]["properties"])
        assert validator.is_valid(nulls)
        assert not validator.is_valid({"country": 5})
        lists = {"additional_addresses": [None, nulls], "phone_numbers": [None]}
        assert validator.is_valid({**nulls, **(lists if name == "CustomerRequest" else {})})
        assert sandbox.create(customer={**nulls, **lists}).status_code == 201


def strict_operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Return the control calls whose bodies allow no unknown keys."""
    for method, path, operation in operations():
        if path.startswith("/control/") and path != "/control/state/" and "requestBody" in operation:
            yield method, path, operation


@pytest.mark.parametrize(
    ("method", "path", "operation"), list(strict_operations()), ids=lambda value: str(value)[:60]
)
def test_unknown_keys_are_described_as_they_are_treated(
    sandbox: Sandbox, method: str, path: str, operation: dict[str, Any]
) -> None:
    """The description and the control API both refuse unknown keys at every level."""
    body = operation["requestBody"]["content"]["application/json"]
    schemas = description()["components"]["schemas"]
    validator = Draft202012Validator({"components": {"schemas": schemas}, **body["schema"]})
    for wrong in with_another_key(body["example"]):
        assert validator.is_valid(body["example"])
        assert not validator.is_valid(wrong)
        order = sandbox.place(card())
        concrete_path = path.replace("{order_id}", order["id"]).replace("{qr_id}", "x")
        assert sandbox.call(method, concrete_path, wrong).status_code in (400, 404)


def with_another_key(example: Any) -> Iterator[Any]:
    """Return copies of the example with an unknown key at each level."""
    if isinstance(example, dict):
        yield {**example, "nonexistent": 1}
        for key, inner in example.items():
            yield from ({**example, key: wrong} for wrong in with_another_key(inner))
    elif isinstance(example, list):
        yield from ([wrong] for wrong in with_another_key(example[0]))


@pytest.mark.parametrize(
    ("path", "method"),
    [("/v1/orders/", "post"), ("/control/state/", "put"), ("/control/project/", "patch")],
)
def test_a_full_disk_is_described(path: str, method: str) -> None:
    """Calls that store data describe 507, and the creation of projects describes 429."""
    assert "507" in description()["paths"][path][method]["responses"]
    assert "507" not in description()["paths"]["/control/journal/"]["get"]["responses"]
    assert "429" in description()["paths"]["/control/projects/"]["post"]["responses"]


def test_generated_clients_can_tell_schemas_apart() -> None:
    """No schema is the constructor of another in Go, or differs from another only in case or separators."""
    names = description()["components"]["schemas"].keys()
    assert [name for name in names if f"New{name}" in names] == []
    plain = [re.sub("[^a-z0-9]", "", name.casefold()) for name in names]
    assert len(set(plain)) == len(plain)


def test_integers_beyond_32_bits_name_their_format() -> None:
    """Go and Java read an integer without a format into 32 bits, which a seed does not fit into."""
    schemas = description()["components"]["schemas"]
    assert schemas["SettingsRequest"]["properties"]["seed"]["format"] == "int64"
    assert schemas["OrderRequest"]["properties"]["amount"]["format"] == "int64"
    assert "format" not in schemas["OrderLine"]["properties"]["vat_percentage"]
