"""A finding names the line that decided on a call, and not the helper that makes all calls."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_payment_sandbox.rehearsal.places import innermost_decision
from pytest_payment_sandbox.rehearsal.report import shop_line
from tests.rehearsal.test_rehearsing import rehearse_suite

API = """
import httpx


class Api:
    def __init__(self, sandbox):
        self.client = httpx.AsyncClient(
            transport=sandbox.httpx_transport, base_url=sandbox.base_url, auth=(sandbox.api_key, "")
        )

    async def call(self, method, path, body=None):
        answer = await self.client.request(method, path, json=body)
        answer.raise_for_status()
        return answer.json()
"""
SALES = """
ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}


async def buy(api):
    try:
        order = await api.call("POST", "/v1/orders/", ORDER)
    except Exception:
        order = await api.call("POST", "/v1/orders/", ORDER)  # sent again, unseen
    return order["id"]


async def is_paid(api, order_id):
    order = await api.call("GET", f"/v1/orders/{order_id}/")
    return order["status"] == "completed"
"""
TESTS = """
import asyncio

from api import Api
from sales import buy, is_paid


async def sell(payment_sandbox):
    api = Api(payment_sandbox)
    order_id = await buy(api)
    await payment_sandbox.aio.act(order_id)
    assert await is_paid(api, order_id)


def test_a_sale(payment_sandbox, shop):
    asyncio.run(sell(payment_sandbox))
"""


def without_coroutines(text: str) -> str:
    """Return the same shop as plain functions, which call the service with requests."""
    text = re.sub(r"async |await |\.aio", "", text).replace(
        "asyncio.run(sell(payment_sandbox))", "sell(payment_sandbox)"
    )
    text = re.sub(
        r"httpx.AsyncClient\(.*?\n        \)",
        "sandbox.session\n        self.url = sandbox.base_url",
        text,
        flags=re.DOTALL,
    )
    return text.replace("request(method, path,", "request(method, self.url + path, timeout=60,")


PASSING_ON = {
    "a request": "    return session.post(url, json=body)",
    "a part of the response": "    answer = session.post(url)\n    answer.raise_for_status()\n    return answer.json()['id']",
    "a part, or nothing": "    answer = session.post(url)\n    return answer.json() if answer.content else None",
    "a default": "    more = {}\n    more['timeout'] = 5\n    return session.post(url, **more).json() or {}",
    "a log of the shop": "    self.log.info(url)\n    return session.post(url)",
    "a retry": "    for pause in (1, 2):\n        try:\n            return session.post(url)\n"
    "        except OSError:\n            time.sleep(pause)\n    raise OSError",
}
DECIDING = {
    "a comparison": "    order = session.get(url)\n    return order['status'] == 'completed'",
    "a change": "    order = session.get(url)\n    sale.paid = 5\n    return order",
    "a changed record": "    order = session.get(url)\n    sale['paid'] = 5\n    return order",
    "an effect": "    order = session.get(url)\n    sales.add(order)\n    return order",
    "no result": "    session.get(url)",
}


@pytest.mark.parametrize(
    ("body", "decides"),
    [
        *(pytest.param(body, False, id=name) for name, body in PASSING_ON.items()),
        *(pytest.param(body, True, id=name) for name, body in DECIDING.items()),
    ],
)
def test_a_function_that_only_passes_a_call_on_does_not_decide(
    tmp_path: Path, body: str, decides: bool
) -> None:
    """A function that returns the result of its call, and does nothing else, is no place of a finding."""
    file = tmp_path / "sales.py"
    file.write_text(f"def inner():\n{body}\n\n\ndef outer():\n    paid = inner() or cancel()\n")
    inner, outer = (str(file), "2"), (str(file), str(file.read_text().count("\n")))
    assert innermost_decision([inner, outer]) == (inner if decides else outer)


def test_a_call_from_another_process_has_no_line() -> None:
    """The line of a call from another process is unknown."""
    assert innermost_decision([]) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('File "/a/app.py", line 7, in buy\nFile "/a/shop.py", line 9, in look', "/a/shop.py:9"),
        ("nothing at http://127.0.0.1:8080/a.py:3", ""),
        ('File "/a/test_shop.py", line 3, in test', ""),
    ],
)
def test_the_line_of_the_shop_is_the_innermost_one(text: str, line: str) -> None:
    """The shop's line is the innermost one outside libraries and tests."""
    assert shop_line(text) == line


@pytest.mark.parametrize("change", [str, without_coroutines], ids=["coroutines", "functions"])
def test_a_finding_names_the_caller_of_the_helper(tmp_path: Path, change: Callable[[str], str]) -> None:
    """The finding names the line of the call whose response was lost; another thread answers coroutines."""
    (tmp_path / "api.py").write_text(change(API))
    (tmp_path / "sales.py").write_text(change(SALES))
    _, report, output = rehearse_suite(
        tmp_path, change(TESTS), "--payment-rehearse-only=create:1:answer-lost"
    )
    line = 1 + SALES.splitlines().index('        order = await api.call("POST", "/v1/orders/", ORDER)')
    (finding,) = report["findings"]
    assert finding["line"] == f"sales.py:{line}", output[-3000:]
