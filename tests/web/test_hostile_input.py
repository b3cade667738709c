"""One request, however long, is handled quickly and gets a short response."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pkgutil import walk_packages
from time import process_time, thread_time
from typing import Any

import pytest
import requests

import payment_sandbox
from payment_sandbox.kernel.patterns import Pattern
from tests.support.driver import Sandbox, card, violations

JSON = {"Content-Type": "application/json"}
SECONDS_MAX = 3.0  # these requests take 0.1 s; slow patterns took from 7 s to minutes
ANSWER_BYTES_MAX = 1 << 17
LENGTH = 40_000
VALUES = 19_000  # just under the limit


def patterns() -> Iterator[Pattern[Any]]:
    """Return every pattern of the package."""
    for module in walk_packages(payment_sandbox.__path__, "payment_sandbox."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    gc.unfreeze()  # a server may have frozen them, which hides them from the collector
    yield from (value for value in gc.get_objects() if isinstance(value, Pattern))


def test_patterns_take_linear_time() -> None:
    """No pattern backtracks on long repetitions that end with a mismatch."""
    pieces = [
        " ",
        "1",
        "4",
        "1 ",
        "1-",
        '"',
        '\\"',
        "[",
        '"cvc"',
        '"cvc":"',
        '"cvc" ',
        "P1",
        "a",
        "a.",
        "[.,",
    ]
    all_patterns = list(patterns())
    assert len(all_patterns) > 8
    for pattern in all_patterns:
        for piece in pieces:
            text: Any = (piece * LENGTH)[:LENGTH] + "!"
            hostile = text.encode() if isinstance(pattern.pattern, bytes) else text
            started = thread_time()
            pattern.search(hostile)
            pattern.fullmatch(hostile)
            pattern.sub("" if isinstance(hostile, str) else b"", hostile)
            assert thread_time() - started < SECONDS_MAX, (pattern.pattern, piece)


@contextmanager
def quickly() -> Iterator[None]:
    """Expect that a block takes little time of the processor."""
    started = process_time()
    yield
    assert process_time() - started < SECONDS_MAX


def expect_quick(send: Callable[[], requests.Response]) -> requests.Response:
    """Expect a short and quick response; the server runs in this process."""
    with quickly():
        answer = send()
    assert len(answer.content) < ANSWER_BYTES_MAX
    return answer


@pytest.mark.parametrize("field", ["number", "expiry", "cvc", "holder"])
def test_a_form_field_may_be_long(sandbox: Sandbox, field: str) -> None:
    """Long form fields are handled quickly; anyone can send them without a key."""
    order = sandbox.place(card())
    url = f"http://{order['transactions'][0]['payment_url']}"
    page = requests.get(url).text
    token = page.partition('name="token" value="')[2].partition('"')[0]
    fields = {"action": "pay", "token": token, "number": "4", "expiry": "1", field: "1" + " " * LENGTH + "x"}
    expect_quick(lambda: requests.post(url, data=fields))
    assert sandbox.read(order)["status"] == "processing"


def test_a_header_may_be_long(sandbox: Sandbox) -> None:
    """Long headers are handled quickly, although the library's pattern takes quadratic time."""
    for header in ("Accept", "Accept-Language", "If-None-Match", "Cookie", "Authorization", "Content-Type"):
        for length, status in ((15_000, 200), (100_000, 400)):
            value = "a" + " " * length + "b"
            answer = expect_quick(partial(requests.get, f"{sandbox.url}/health/", headers={header: value}))
            assert answer.status_code == status


def test_a_duplicate_key_is_found_quickly(sandbox: Sandbox) -> None:
    """A duplicate among 19,000 keys is reported quickly."""
    pairs = ", ".join(f'"{number}": 1' for number in [*range(VALUES), VALUES - 1])
    answer = expect_quick(
        lambda: requests.post(f"{sandbox.url}/control/projects/", data=f"{{{pairs}}}", headers=JSON)
    )
    assert answer.status_code == 400
    assert f"'{VALUES - 1}' twice" in answer.json()["error"]["value"]


def lines(count: int) -> list[dict[str, Any]]:
    """Return that many lines of one item each."""
    return [{"merchant_order_line_id": str(number), "amount": 1, "quantity": 1} for number in range(count)]


def test_many_lines_can_be_captured_voided_and_refunded(sandbox: Sandbox) -> None:
    """Each call takes linear time, and a refusal reports only 100 of the violations."""
    count = 1000
    order = sandbox.pay(sandbox.place(card(capture_mode="manual"), amount=count, order_lines=lines(count)))
    path = f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}"
    wrong = [{"merchant_order_line_id": f"x{number}", "quantity": 1} for number in range(count)]
    answer = expect_quick(lambda: sandbox.post(f"{path}/captures/orderlines/", {"order_lines": wrong}))
    assert answer.status_code == 400
    assert len(answer.json()["error"]["violations"]) == 100
    right = [{"merchant_order_line_id": str(number), "quantity": 1} for number in range(count)]
    for call, part in (
        (f"{path}/captures/orderlines/", right[: count // 2]),
        (f"{path}/voids/orderlines/", right[count // 2 :]),
        (f"/v1/orders/{order['id']}/refunds/", right[: count // 2]),
    ):
        with quickly():
            assert sandbox.post(call, {"order_lines": part}).status_code in (200, 201)


@pytest.mark.parametrize(
    "body",
    [
        {"transactions": [{"payment_method": 1}] * (VALUES // 2)},
        {"transactions": [{"payment_method": "x"}] * (VALUES // 2)},
        {"payment_methods": ["x"] * VALUES},
        {f"unknown{number}": 1 for number in range(VALUES - 10)},
    ],
    ids=["wrong transactions", "unknown methods", "unknown in the list", "unknown keys"],
)
def test_validation_stops_at_the_hundredth_violation(sandbox: Sandbox, body: dict[str, Any]) -> None:
    """Validation stops after the hundredth violation."""
    expect_quick(lambda: sandbox.post("/v1/orders/", {"currency": "EUR", "amount": 1, **body}))
    unknown = {f"unknown{number}": 1 for number in range(VALUES)}
    assert len(violations(expect_quick(lambda: sandbox.patch("/control/project/", unknown)))) == 100


@pytest.mark.parametrize(
    ("extra", "is_accepted"),
    [
        ({"text": "," * 50_000 + "[{" * 5000}, True),
        ({"text": '\\"' * 9_000 + "," * 30_000}, True),
        ({"list": [1] * 19_000}, True),
        ({"list": [1] * 20_001}, False),
        ({"list": [{}] * 10_001}, False),
    ],
    ids=["commas in a text", "escapes", "just enough", "numbers", "objects"],
)
def test_values_are_counted_but_not_punctuation_in_texts(
    sandbox: Sandbox, extra: dict[str, Any], is_accepted: bool
) -> None:
    """A body may have 20,000 values; commas and brackets in texts do not count."""
    answer = sandbox.create(extra=extra) if is_accepted else expect_quick(lambda: sandbox.create(extra=extra))
    assert answer.status_code == (201 if is_accepted else 400), answer.text[:300]
    if not is_accepted:
        assert answer.json()["error"]["value"] == "the body has more than 20,000 values"
    else:
        assert answer.json()["extra"] == extra
