"""A body that is unreadable or has an invalid value is refused and never causes status 500."""

from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, refused

JSON = {"Content-Type": "application/json"}
GOOD = b'{"currency": "EUR", "amount": 1000}'


def send(sandbox: Sandbox, body: bytes, **headers: str) -> requests.Response:
    """Post raw bytes as an order."""
    return sandbox.post("/v1/orders/", data=body, headers={**JSON, **headers})


MALFORMED: dict[str, tuple[bytes, ...]] = {
    "empty": (b"", b"   "),
    "not JSON": (
        b"{",
        b"{'currency': 'EUR'}",
        GOOD + b"x",
        b"\xef\xbb\xbf" * 2 + GOOD,
        b'{"description": "a\x00b"}',
    ),
    "NaN": (b'{"amount": NaN}',),
    "Infinity": (b'{"amount": Infinity}', b'{"amount": -Infinity}'),
    "too large": (b'{"amount": 1e999}',),
    "a number with too many digits": (b'{"amount": ' + b"9" * 5000 + b"}",),
    "twice": (b'{"amount": 1, "amount": 2}', b'{"extra": {"a": 1, "a": 1}}'),
    "nested": (
        b"[" * 10_000 + b"]" * 10_000,
        b'{"extra":' * 10_000 + b"1" + b"}" * 10_000,
        b'{"extra": ' + b"[" * 101 + b"]" * 101 + b"}",
    ),
    "surrogate": (b'{"description": "\\ud800"}', b'{"\\udfff": 1}'),
    "NUL": (b'{"description": "a\\u0000b"}',),
    "UTF-8": (
        b'{"description": "\xff\xfe"}',
        b'{"description": "\xed\xa0\x80"}',
        "{}".encode("utf-16"),
    ),
}


@pytest.mark.rule("SET-08", "SET-03")
@pytest.mark.parametrize("problem", MALFORMED)
def test_malformed_json_is_a_bad_request(sandbox: Sandbox, problem: str) -> None:
    """The error describes the problem, and no order is created."""
    for body in MALFORMED[problem]:
        error = refused(send(sandbox, body), 400, "BadRequest")
        assert problem in error["value"]
        assert error["violations"] == []
    assert sandbox.get("/control/journal/?count=1&status=201").json() == {"count": 0}


def test_a_surrogate_pair_is_a_character(sandbox: Sandbox) -> None:
    """Surrogate pairs are accepted; only lone surrogates are refused."""
    answer = send(sandbox, b'{"currency": "EUR", "amount": 1, "description": "\\ud83d\\ude00"}')
    assert answer.json()["description"] == "\N{GRINNING FACE}"


def test_a_body_that_is_no_object_is_refused(sandbox: Sandbox) -> None:
    """Any JSON value but an object is refused."""
    for body in (b"[]", b"null", b'"EUR"', b"1295", b"true"):
        refused(send(sandbox, body), 400, "ValidationError")


WRONG: dict[str, Any] = {
    "currency": 1,
    "amount": "1",
    "description": 1,
    "merchant_order_id": 1,
    "return_url": 1,
    "webhook_url": [],
    "expiration_period": 1,
    "payment_methods": "credit-card",
    "customer": "Jan",
    "order_lines": {},
    "transactions": {},
    "client": [],
    "extra": [],
}


@pytest.mark.rule("SET-05", "SET-03", "A03")
def test_all_violations_come_at_once(sandbox: Sandbox) -> None:
    """Each violation has its path and, if there is a list, the allowed values."""
    error = refused(sandbox.post("/v1/orders/", WRONG), 400, "ValidationError")
    assert {violation["path"] for violation in error["violations"]} == set(WRONG)
    assert {"path": "currency", "message": "must be a string; got 1"} in error["violations"]
    error = refused(sandbox.create({"payment_method": "cash"}, currency="USD"), 400, "ValidationError")
    allowed = {violation["path"]: violation["allowed"] for violation in error["violations"]}
    assert allowed["currency"] == ["EUR"]
    assert "credit-card" in allowed["transactions[0].payment_method"]
    assert "currency" in error["value"]
    error = refused(
        sandbox.create({"payment_method": "cash"}, amount="5", currency=...), 400, "ValidationError"
    )
    paths = {violation["path"] for violation in error["violations"]}
    assert paths == {"amount", "currency", "transactions[0].payment_method"}


@pytest.mark.parametrize("path", WRONG)
def test_no_wrong_type_breaks_anything(sandbox: Sandbox, path: str) -> None:
    """A value of any type is accepted or reported as a violation at its path."""
    values: list[Any] = [None, True, 1.5, "", [[]], {"": {}}, [None], -1]
    for value in values:
        answer = sandbox.create(**{path: value})
        if answer.status_code != 201:
            error = refused(answer, 400, "ValidationError")
            assert all(violation["path"].startswith(path) for violation in error["violations"])


@pytest.mark.rule("SET-09")
def test_a_body_over_one_mebibyte_is_refused(sandbox: Sandbox) -> None:
    """A body of exactly one mebibyte is accepted; one more byte is refused."""
    filler = b" " * ((1 << 20) - len(GOOD))
    assert send(sandbox, GOOD + filler).status_code == 201
    error = refused(send(sandbox, GOOD + filler + b" "), 413, "RequestEntityTooLarge")
    assert "1 MiB" in error["value"]
    chunks = (GOOD if part == 0 else b" " * 65536 for part in range(18))
    answer = sandbox.post("/v1/orders/", data=chunks, headers=JSON)
    refused(answer, 413, "RequestEntityTooLarge")


@pytest.mark.rule("SET-09", "END-01")
def test_a_body_that_is_not_json_by_its_type_is_refused(sandbox: Sandbox) -> None:
    """The error names the content type that was sent; all answers are JSON."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/xml", ""):
        answer = sandbox.post("/v1/orders/", data=GOOD, headers={"Content-Type": kind})
        error = refused(answer, 415, "UnsupportedMediaType")
        assert (kind or "nothing") in error["value"]
    assert send(sandbox, GOOD, **{"Content-Type": "application/json; charset=utf-8"}).status_code == 201
    for answer in (sandbox.create(), sandbox.create(amount=0), sandbox.get("/nowhere")):
        assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.rule("SET-09")
@pytest.mark.parametrize("coding", ["gzip", "GZIP, identity"])
def test_a_compressed_body_is_refused(sandbox: Sandbox, coding: str) -> None:
    """The error tells the client to omit the Content-Encoding header."""
    error = refused(send(sandbox, GOOD, **{"Content-Encoding": coding}), 415, "UnsupportedMediaType")
    assert "without Content-Encoding" in error["value"]
    (entry,) = sandbox.get("/control/journal/").json()["items"]
    assert entry["request"] is None, "the body was not read"
    assert send(sandbox, GOOD, **{"Content-Encoding": "identity"}).status_code == 201
