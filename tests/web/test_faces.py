"""The middlewares of a face wrap the view in order, and an application without a face has no trace of it."""

import gc
from weakref import ref

import pytest
from werkzeug import Response
from werkzeug.test import Client, create_environ

from payment_sandbox.serving.app import SandboxApp, make_app
from payment_sandbox.web.call import Call, ClientConnection
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.faces import Face, Middleware
from payment_sandbox.web.routes import RouteGroup, described_routes, route
from tests.support.projects import made_registry


def recording(name: str, seen: list[str]) -> Middleware:
    """Return a middleware that records what it sees."""

    def end(call: Call, response: Response) -> Response:
        seen.append(f"{name} {response.status_code}")
        return response

    return Middleware(before=lambda call: seen.append(name), after=end)


def refuse_call(call: Call, response: Response | None = None) -> Response:
    """Refuse every call, before or after the view."""
    raise RequestRefused(418, "on purpose")


def make_app_with_face(seen: list[str], *middlewares: Middleware) -> SandboxApp:
    """Create an application with one extra face."""
    group = RouteGroup("own")

    @route(group, "GET", "/own/<name>/", media_type="text/plain")
    def get_own(call: Call, name: str) -> Response:
        seen.append(f"view {name}")
        if name == "crash":
            raise ValueError("on purpose")
        return Response(name)

    face = Face(group, (recording("outer", seen), *middlewares, recording("inner", seen)), answer_for)
    return make_app(made_registry(), public_url="http://sandbox.example", load_optional_faces=lambda: [face])


@pytest.mark.parametrize(("name", "status"), [("fine", 200), ("crash", 500)])
def test_middlewares_are_around_the_view_in_order(name: str, status: int) -> None:
    """Each middleware sees a response, even if the view raises an error."""
    seen: list[str] = []
    answer = Client(make_app_with_face(seen)).get(f"/own/{name}/")
    assert answer.status_code == status
    assert seen == ["outer", "inner", f"view {name}", f"inner {status}", f"outer {status}"]


@pytest.mark.parametrize(
    ("refusing", "skipped"),
    [
        (Middleware(refuse_call), 3),
        (Middleware(lambda call: Response(status=418)), 3),
        (Middleware(after=refuse_call), 0),
    ],
)
def test_a_refusal_skips_the_inner_part_of_the_call(refusing: Middleware, skipped: int) -> None:
    """The outer middlewares see a refusal; before the view, nothing inside the refusing one is called."""
    seen: list[str] = []
    answer = Client(make_app_with_face(seen, refusing)).get("/own/fine/")
    inside = ["inner", "view fine", "inner 200"]
    assert (answer.status_code, seen) == (418, ["outer", *inside[skipped:], "outer 418"])


def test_html_faces_are_loaded_at_their_first_request() -> None:
    """Calls to the APIs, also to unknown paths of them, load no HTML faces; without the dashboard the rest works."""
    loaded: list[str] = []

    def load() -> list[Face]:
        loaded.append("optional faces")
        return []

    registry = made_registry()
    _, api_key = registry.create({})
    app = make_app(registry, public_url="http://sandbox.example", load_optional_faces=load)
    client = Client(app)
    order = {"currency": "EUR", "amount": 1}
    assert client.post("/v1/orders/", json=order, auth=(api_key, "")).status_code == 201
    for path in ("/v1/orders/x/", "/v1/nothing/", "/control/nothing/", "/health/"):
        client.get(path)
    assert loaded == []
    assert [client.get(path).status_code for path in ("/docs/", "/dashboard/")] == [200, 404]
    assert loaded == ["optional faces"]
    assert not [rule for rule, _ in described_routes(app.parts()) if "dashboard" in rule.rule]


def test_a_request_is_freed_at_its_end() -> None:
    """No cycle keeps a request until the next garbage collection."""
    app = make_app(made_registry(), public_url="http://sandbox.example")
    gc.collect()
    gc.disable()
    try:
        call = app.route(create_environ("/health/"), ClientConnection())
        assert app.respond(call).status_code == 200
        request = ref(call.request)
        del call
        assert request() is None
    finally:
        gc.enable()
