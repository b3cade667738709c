"""What a server says of itself without a key: that it is well, and what it can do."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from jsonschema import Draft202012Validator

from payment_sandbox.serving.server import Server
from payment_sandbox.version import __version__
from payment_sandbox.web.app import make_app
from payment_sandbox.web.routes import RouteWithoutFacts, require_facts
from tests.support.described import description
from tests.support.driver import Sandbox
from tests.support.projects import made_registry


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
    assert routes == described["paths"].keys()


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


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every call that is described: its method, path and operation."""
    for path, by_method in description()["paths"].items():
        for method, operation in by_method.items():
            yield method.upper(), path, operation


def test_every_json_answer_has_a_real_shape() -> None:
    """No call answers just any object."""
    for method, path, operation in operations():
        for status, answer in operation["responses"].items():
            if "application/json" in answer["content"]:
                schema = answer["content"]["application/json"]["schema"]
                assert "$ref" in schema or "$ref" in schema.get("items", {}), (method, path, status)


def test_every_call_has_an_example_that_fits_its_shape() -> None:
    """Of its answer where that is JSON, and of its body where it needs one."""
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
    """With what it means and what it may be."""
    found = {}
    for method, path, operation in operations():
        for parameter in operation["parameters"]:
            if parameter["in"] == "query":
                assert parameter["description"], (method, path, parameter)
                found[path, parameter["name"]] = parameter["schema"]
    assert found["/v1/orders/{order_id}/", "fields[]"]["items"]["enum"] == [
        "order_line_details",
        "amount_details",
    ]
    assert "completed" in found["/control/wait/", "status"]["enum"]


def test_it_says_where_the_server_is() -> None:
    """So that tools can call it as it stands."""
    with Server(public_url="http://pay.test:8443/sandbox") as server:
        whole = requests.get(f"{server.local_url}/openapi.json", timeout=10).json()
    assert whole["servers"][0]["url"] == "http://pay.test:8443/sandbox"


def test_a_route_without_facts_does_not_start() -> None:
    """Whoever adds one is told how to declare it."""
    app = make_app(made_registry(), public_url="http://sandbox.example")
    app.add_url_rule("/more/", view_func=lambda: "more")
    with pytest.raises(RouteWithoutFacts, match="/more/ has no facts"):
        require_facts(app)


def test_every_reference_is_in_the_document(sandbox: Sandbox) -> None:
    """In examples, too: mock servers and generators try to resolve whatever looks like a reference."""
    document = sandbox.get("/openapi.json").json()

    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from (value for key, value in node.items() if key == "$ref")
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            yield from references(inner)

    for reference in set(references(document)):
        found = document
        for key in reference.removeprefix("#/").split("/"):
            assert key in found, reference
            found = found[key]
