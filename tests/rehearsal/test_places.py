"""A finding names the line that decided on a call, and not the helper that makes all calls."""

import json
from pathlib import Path

import pytest

from pytest_payment_sandbox.rehearsal.places import LocatedCall, deciding_line
from tests.support.suites import suite

API = """
class Api:
    def __init__(self, sandbox):
        self.sandbox = sandbox

    def call(self, method, path, body=None):
        url = self.sandbox.base_url + path
        answer = self.sandbox.session.request(method, url, json=body, timeout=5)
        answer.raise_for_status()
        return answer.json()
"""
SALES = """
ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}


def buy(api):
    try:
        return api.call("POST", "/v1/orders/", ORDER)["id"]
    except OSError:
        return api.call("POST", "/v1/orders/", ORDER)["id"]  # sent again, unseen


def is_paid(api, order_id):
    return api.call("GET", f"/v1/orders/{order_id}/")["status"] == "completed"
"""
TESTS = """
from api import Api
from sales import buy, is_paid


def test_a_sale(payment_sandbox, shop):
    api = Api(payment_sandbox)
    order_id = buy(api)
    payment_sandbox.act(order_id)
    assert is_paid(api, order_id)
"""
READ, CREATE = "GET /v1/orders/…/", "POST /v1/orders/"
HELPER_LINE, BUY_LINE, READ_LINE = ("/api.py", "8"), ("/sales.py", "7"), ("/sales.py", "13")
CREATE_CALL, READ_CALL = (
    LocatedCall(CREATE, [HELPER_LINE, BUY_LINE]),
    LocatedCall(READ, [HELPER_LINE, READ_LINE]),
)

CREATE_IN_CLIENT, READ_IN_CLIENT = (
    LocatedCall(CREATE, [("/api.py", "20"), BUY_LINE]),
    LocatedCall(READ, [("/api.py", "24"), READ_LINE]),
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


def test_a_finding_names_the_caller_of_the_helper(tmp_path: Path) -> None:
    """The finding names the line of the call whose response was lost."""
    (tmp_path / "api.py").write_text(API)
    (tmp_path / "sales.py").write_text(SALES)
    report = tmp_path / "report.json"
    result = suite(
        tmp_path,
        TESTS,
        "--payment-rehearse-only=create:1:answer-lost",
        f"--payment-rehearse-report={report}",
    )
    assert result.returncode == 1, result.stdout[-3000:]
    line = 1 + SALES.splitlines().index('        return api.call("POST", "/v1/orders/", ORDER)["id"]')
    (finding,) = json.loads(report.read_text())["tests"][0]["findings"]
    assert finding["line"] == f"sales.py:{line}"


ASYNC_API = """
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
ASYNC_SALES = """
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
ASYNC_TESTS = """
import asyncio

from api import Api
from sales import buy, is_paid


def test_a_sale(payment_sandbox, shop):
    async def sale():
        api = Api(payment_sandbox)
        order_id = await buy(api)
        await payment_sandbox.aio.act(order_id)
        assert await is_paid(api, order_id)

    asyncio.run(sale())
"""


def test_a_coroutine_has_a_line(tmp_path: Path) -> None:
    """A coroutine's call has a line, although another thread answers it."""
    (tmp_path / "api.py").write_text(ASYNC_API)
    (tmp_path / "sales.py").write_text(ASYNC_SALES)
    report = tmp_path / "report.json"
    only, report_option = (
        "--payment-rehearse-only=create:1:answer-lost",
        f"--payment-rehearse-report={report}",
    )
    result = suite(tmp_path, ASYNC_TESTS, only, report_option)
    assert result.returncode == 1, result.stdout[-3000:]
    line = 1 + ASYNC_SALES.splitlines().index('        order = await api.call("POST", "/v1/orders/", ORDER)')
    (finding,) = json.loads(report.read_text())["tests"][0]["findings"]
    assert finding["line"] == f"sales.py:{line}"
