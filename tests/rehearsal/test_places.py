"""A finding names the line that decided on a call, and not the helper that makes all calls."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_payment_sandbox.rehearsal.places import LocatedCall, deciding_line, innermost_decision
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


READ, CREATE = "GET /v1/orders/…/", "POST /v1/orders/"
HELPER_LINE, BUY_LINE, READ_LINE = ("/api.mjs", "8"), ("/sales.mjs", "7"), ("/sales.mjs", "13")
CREATE_CALL, READ_CALL = (
    LocatedCall(CREATE, [HELPER_LINE, BUY_LINE]),
    LocatedCall(READ, [HELPER_LINE, READ_LINE]),
)

CREATE_IN_CLIENT, READ_IN_CLIENT = (
    LocatedCall(CREATE, [("/api.mjs", "20"), BUY_LINE]),
    LocatedCall(READ, [("/api.mjs", "24"), READ_LINE]),
)


@pytest.mark.parametrize(
    ("calls", "line"),
    [
        ([CREATE_CALL, READ_CALL], BUY_LINE),
        ([CREATE_CALL, CREATE_CALL], HELPER_LINE),  # the run shows no other caller
        ([CREATE_CALL, LocatedCall(READ, [HELPER_LINE, BUY_LINE])], BUY_LINE),  # a loop makes all calls
        ([CREATE_IN_CLIENT, READ_IN_CLIENT], BUY_LINE),  # each kind of call has its own line in the client
        ([LocatedCall(CREATE, [BUY_LINE]), LocatedCall(READ, [READ_LINE])], BUY_LINE),  # there is no client
    ],
)
def test_a_line_decides_if_only_one_kind_of_call_passes_it(
    calls: list[LocatedCall], line: tuple[str, str]
) -> None:
    """The innermost line with only one kind of call is the deciding line."""
    assert deciding_line(calls[0], calls) == line


def test_a_call_from_another_process_has_no_line() -> None:
    """The line of a call from another process is unknown."""
    assert deciding_line(LocatedCall(CREATE, []), [CREATE_CALL]) is None


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
