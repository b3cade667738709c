"""Changed values of submitted forms in all encodings and kinds of applications."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, request
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request as WerkzeugRequest

from payment_sandbox.scenarios.variation import SubmittedForm
from payment_sandbox.testing.shops.filling import (
    FormBody,
    add_cents,
    add_to_number,
    change_choice,
    read_choices,
)
from payment_sandbox.testing.shops.shop_requests import unwatch, watch
from payment_sandbox.testing.shops.submitting import Submission, set_submission_chooser

PAGE = """
<form>
<select name="country"><option value="">choose<option value="NL">NL<option value="DE" disabled>DE</select>
<input type="radio" name="pay with" value="card"><input type="RADIO" name="pay with" value="bank & more">
<input type="text" name="name" value="Ada"><option value="stray">
</form>
"""
CHOICES = {"country": ["NL"], "pay with": ["card", "bank & more"]}


def encode(kind: str, **values: str) -> bytes:
    """Return the body of a form with these values."""
    if kind == "json":
        return json.dumps(values).encode()
    builder = EnvironBuilder(method="POST", data=values)
    if kind == "multipart":
        builder.content_type = "multipart/form-data"
    return bytes(builder.get_environ()["wsgi.input"].read())


def decode(kind: str, body: bytes, like: bytes) -> dict[str, str]:
    """Return the values of a body with the encoding of another one."""
    if kind == "json":
        return dict(json.loads(body))
    boundary = like.strip().partition(b"\r\n")[0][2:].decode()
    types = {
        "query": "application/x-www-form-urlencoded",
        "multipart": f"multipart/form-data; boundary={boundary}",
    }
    environ = EnvironBuilder(method="POST", data=body, content_type=types[kind]).get_environ()
    return dict(WerkzeugRequest(environ).form)


def test_the_choices_of_a_page() -> None:
    """The choices of a page are its selectable options and radio buttons."""
    assert read_choices(PAGE) == CHOICES
    assert read_choices("<select><option value=x></select>no form<") == {}


@pytest.mark.parametrize("kind", ["query", "json", "multipart"])
@pytest.mark.parametrize(
    ("before", "cents", "after"),
    [("12.50", -1, "12.49"), ("12,50", 1, "12,51"), ("0.99", 1, "1.00"), ("0.00", -1, "0.00")],
)
def test_a_cent_more_or_less(kind: str, before: str, cents: int, after: str) -> None:
    """Only the first amount of a form is changed."""
    body = encode(kind, date="2024-01-02", amount=before, other="7.50")
    changed_body = add_cents(FormBody(body, {}), cents)
    assert decode(kind, changed_body, body) == {"date": "2024-01-02", "amount": after, "other": "7.50"}


def test_a_number_in_json_is_an_amount() -> None:
    """Amounts and counts in JSON may be numbers."""
    assert add_cents(FormBody(b'{"count": 2, "amount": 9.99}', {}), 1) == b'{"count": 2, "amount": 10.00}'
    assert add_to_number(FormBody(b'{"count": 2, "amount": 9.99}', {}), 1) == b'{"count": 3, "amount": 9.99}'


@pytest.mark.parametrize("kind", ["query", "json", "multipart"])
def test_another_choice(kind: str) -> None:
    """The last field with another option is changed; other values stay."""
    body = encode(kind, **{"country": "NL", "pay with": "card", "name": "card"})
    changed_body = change_choice(FormBody(body, CHOICES))
    assert decode(kind, changed_body, body) == {"country": "NL", "pay with": "bank & more", "name": "card"}
    assert change_choice(FormBody(changed_body, CHOICES)) == body
    other_body = encode(kind, **{"country": "NL", "pay with": "card and more"})
    assert change_choice(FormBody(other_body, CHOICES)) == other_body


def test_the_kinds_of_changes_of_a_form() -> None:
    """The form and the preceding pages determine which kinds of values can be changed."""
    assert FormBody(b"count=2&amount=1.00&method=a", {"method": ["a", "b"]}).details == SubmittedForm(
        True, True, True, True
    )
    assert FormBody(b"name=2x&amount=1.0&method=a", {"method": ["a"]}).details == SubmittedForm()


@pytest.fixture
def with_changed_choices() -> Iterator[None]:
    """Change a choice in each submitted form."""
    set_submission_chooser(lambda path, form: Submission(fill=change_choice))
    yield
    set_submission_chooser(None)


def flask_shop() -> Flask:
    """A WSGI shop with a form."""
    app = Flask("shop")
    app.add_url_rule("/", "page", view_func=lambda: PAGE)
    app.add_url_rule("/text", "text", view_func=lambda: (PAGE, {"Content-Type": "text/plain"}))
    app.add_url_rule("/buy", "buy", view_func=lambda: request.form["pay with"], methods=["POST"])
    return app


def starlette_shop() -> Starlette:
    """An ASGI shop with a form."""

    async def page(request: Request) -> HTMLResponse:
        return HTMLResponse(PAGE)

    async def text(request: Request) -> PlainTextResponse:
        return PlainTextResponse(PAGE)

    async def buy(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str((await request.form())["pay with"]))

    return Starlette(routes=[Route("/", page), Route("/text", text), Route("/buy", buy, methods=["POST"])])


@pytest.mark.parametrize(("path", "choice"), [("/", "bank & more"), ("/text", "card")])
def test_the_pages_of_a_shop_are_read(with_changed_choices: None, path: str, choice: str) -> None:
    """The choices of HTML pages are read in WSGI and ASGI shops."""
    shop: Any = flask_shop()
    watch(shop)
    client = shop.test_client()
    assert client.get(path).text == PAGE
    assert client.post("/buy", data={"pay with": "card"}).text == choice
    unwatch(shop)
    set_submission_chooser(lambda path, form: Submission(fill=change_choice))
    shop = starlette_shop()
    watch(shop)
    browser = TestClient(shop)
    assert browser.get(path).text == PAGE
    assert browser.post("/buy", data={"pay with": "card"}).text == choice
    unwatch(shop)
