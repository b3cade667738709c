"""The tools for coding agents, called through the protocol's SDK and directly."""

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.mcpserver.exceptions import ToolError

from payment_sandbox.cli.agent_tools import ANSWER_BYTES_MAX, TOOLS, SandboxTools, select_part
from payment_sandbox.ui.docs.library import read_source
from payment_sandbox.ui.docs.sections import search_index
from payment_sandbox.version import __version__
from tests.support.commands import run
from tests.support.documentation import environment
from tests.support.packages import ROOT
from tests.support.servers import make_server

TOO_LONG = 1500  # characters in the description of a tool


@pytest.fixture
def tools() -> Iterator[SandboxTools]:
    """Tools without a running server."""
    created = SandboxTools({})
    yield created
    created.close()


@pytest.fixture
def started_tools(tools: SandboxTools) -> SandboxTools:
    """Tools with a project whose webhooks fail."""
    tools.start(webhook_url="http://127.0.0.1:9/hook")
    return tools


@pytest.mark.asyncio
async def test_agents_find_tools_with_flat_parameters_and_use_them() -> None:
    """Through the SDK, tools have flat parameters, and a refusal is an error with the next step."""
    served = StdioServerParameters(
        command=sys.executable, args=["-m", "payment_sandbox", "mcp"], env=environment()
    )
    async with stdio_client(served) as streams, ClientSession(*streams) as session:
        hello = await session.initialize()
        assert "Call start first" in str(hello.instructions)
        assert hello.server_info.version == __version__
        listed = (await session.list_tools()).tools
        assert [tool.name for tool in listed] == list(TOOLS)
        for tool in listed:
            assert len(str(tool.description)) < TOO_LONG
            kinds = {each["type"] for each in tool.input_schema["properties"].values()}
            assert kinds <= {"string", "integer"}, tool.name
        too_early = await session.call_tool("review", {})
        assert too_early.is_error
        assert "Next: start()" in too_early.content[0].text  # type: ignore[union-attr]
        started = await session.call_tool("start", {"mode": "live"})
        assert "API key" in started.content[0].text  # type: ignore[union-attr]
        for name, advice in (("amounts", "did you mean 'amount'?"), ("state", "its arguments are: what, ")):
            refused = await session.call_tool("make_order", {name: "expired"})
            assert refused.is_error
            text = refused.content[0].text  # type: ignore[union-attr]
            assert f"make_order has no argument {name!r}" in text
            assert advice in text
        cents = await session.call_tool("make_order", {"amount": 12.95})
        assert "amount: must be a whole number of cents, such as 1295; got 12.95" in str(cents.content)
        order = await session.call_tool("make_order", {"what": "transfer", "amount": 700})
        assert "is completed: 7.00 EUR" in order.content[0].text  # type: ignore[union-attr]


def test_every_answer_is_short_and_says_how_to_get_the_rest(started_tools: SandboxTools) -> None:
    """Long answers are split; the joined parts are the whole, with multi-byte characters, too."""
    for _ in range(3):
        started_tools.make_order(what="paid")
    started_tools.make_order(what="new")
    advanced = started_tools.advance(by="PT1H")
    assert all(line.count("-") < 8 for line in advanced.splitlines() if "expiry" in line), "the id once"
    answers = (
        started_tools.explain_order,
        started_tools.advance,
        partial(started_tools.search, page="pytest"),
    )
    for answer in answers:
        parts = [answer(part=1)]
        while f"part={len(parts) + 1}" in parts[-1].splitlines()[-1]:
            parts.append(answer(part=len(parts) + 1))
        assert len(parts) > 1
        assert max(len(each.encode()) for each in parts) < ANSWER_BYTES_MAX
    page = "\n".join(each.rpartition("\n[part ")[0] for each in parts)
    assert page == read_source("pytest")


def test_an_order_that_is_paid_already_takes_the_remaining_steps(started_tools: SandboxTools) -> None:
    """An authorized order can be captured; a paid one cannot be paid again."""
    order_id = started_tools.make_order(what="authorized").partition("order_id='")[2].partition("'")[0]
    started_tools.make_order(what="captured", order_id=order_id)
    assert "/captures/" in started_tools.explain_order(order_id=order_id)
    with pytest.raises(ToolError, match="ossible"):
        started_tools.make_order(what="paid", order_id=order_id)


def test_a_search_for_a_sentence_finds_its_section(tools: SandboxTools) -> None:
    """Not every word has to match, and the index of the sections is built once."""
    assert "authorization-and-capture" in tools.search(words="void the rest of a reservation")
    assert search_index() is search_index()
    assert "mistakes: Do everything once" in tools.search(words="refund twice webhook")


def test_a_line_that_is_longer_than_an_answer_is_cut() -> None:
    """Long lines are split between characters."""
    line = "€" * 3000
    count = int(select_part(line, 1, "again(part={})").partition(" of ")[2].partition(";")[0])
    parts = [select_part(line, part, "again(part={})") for part in range(1, count + 1)]
    assert "".join(part.rpartition("\n[part ")[0] for part in parts) == line


@pytest.mark.parametrize(
    ("tool", "arguments", "problem", "step"),
    [
        ("start", {"mode": "nonsense"}, "mode must be one of: test, live", "search(words='settings')"),
        ("start", {"scenario": "webhook-lots"}, "webhook-lost", "search("),
        ("make_order", {"what": "payed"}, "'payed' is not a state of orders; the states are: hosted, new, paid", "explain_order()"),
        ("make_order", {"what": "transfer"}, "transfer needs mode live", "start(mode='live')"),
        ("make_order", {"order_id": "nope"}, "there is no order 'nope'", "explain_order()"),
        ("make_order", {"method": "credit-crd"}, "'credit-crd' is not a payment method", "explain_order()"),
        ("rehearse", {"command": "pytst -q"}, "there is no program 'pytst'", "rehearse(command="),
        ("search", {}, "give words or page", "search(words='webhook retry')"),
        ("snapshot", {}, "file is empty", "snapshot(file='state.json')"),
        ("advance", {"by": "P3X"}, "must be an ISO 8601 duration", "advance(by='PT30M')"),
        ("control", {"call": "timeline", "arguments": '{"order": 5}'}, "'order'; its arguments are: ", "control()"),
        ("advance", {"until": "tomorrow"}, "tomorrow", "advance(by='PT30M')"),
        ("explain_order", {}, "there are no orders yet", "make_order(what='new')"),
        ("explain_order", {"order_id": "nope"}, "there is no order 'nope'", "make_order(what='new')"),
        ("rehearse", {}, "there is no rehearsal yet", "rehearse(command='pytest tests')"),
        ("rehearse", {"command": "pytest", "folder": "/nowhere"}, "/nowhere", "rehearse(command="),
        ("search", {"words": "zebra"}, "no section contains most of: 'zebra'", "search(words='webhook retry')"),
        ("search", {"page": "zebra"}, "there is no page 'zebra'; the pages are: quick-start", "search("),
        ("search", {"page": "agents", "part": 99}, "there is no part 99", "search(page='agents', part=1)"),
        ("snapshot", {"file": "/nowhere/state.json"}, "/nowhere/state.json", "snapshot(file='state.json')"),
        ("snapshot", {"file": "x", "action": "load"}, "action must be save or restore", "snapshot(file="),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_wrong_and_the_next_step(
    started_tools: SandboxTools, tool: str, arguments: dict[str, str], problem: str, step: str
) -> None:
    """The refusal is shorter than the limit of answers."""
    with pytest.raises(ToolError) as refused:
        getattr(started_tools, tool)(**arguments)
    message, _, next_step = str(refused.value).rpartition(" Next: ")
    assert problem in message
    assert step in next_step
    assert len(str(refused.value).encode()) < ANSWER_BYTES_MAX
    assert started_tools.review().startswith("No findings")  # an agent's mistakes are not the shop's


def test_a_rehearsal_without_the_plugin_names_its_installation(tools: SandboxTools, tmp_path: Path) -> None:
    """A pytest of another environment refuses the options of the plugin."""
    pytest_without = tmp_path / "pytest"
    pytest_without.write_text("#!/bin/sh\necho 'unrecognized arguments: --payment-rehearse' >&2\nexit 4\n")
    pytest_without.chmod(0o755)
    with pytest.raises(
        ToolError,
        match=r"no plugin for this; in its environment, pip install '.*/sandbox/pytest_payment_sandbox'",
    ):
        tools.rehearse(command=str(pytest_without))


def test_nothing_works_before_start(tools: SandboxTools) -> None:
    """Every tool that needs a project says that start comes first."""
    for tool in set(TOOLS) - {"start", "search", "rehearse"}:
        with pytest.raises(ToolError, match=r"Next: start\(\)"):
            getattr(tools, tool)(**({"file": "x"} if tool == "snapshot" else {}))


def test_an_order_of_the_shop_is_paid_explained_and_reviewed(tools: SandboxTools) -> None:
    """The tools use a running server, and close deletes their project."""
    with make_server() as server:
        own = SandboxTools({"SANDBOX_URL": server.url})
        assert server.url in own.start()
        own.make_order(what="hosted", amount=500)
        assert "possible for the customer: visit, choose" in own.explain_order()
        assert "bank-redirect-nl is completed" in own.make_order(order_id="last", method="bank-redirect-nl")
        assert "2 status changes sent no webhook" in own.explain_order()
        projects = len(server.registry.all())
        own.close()
        assert len(server.registry.all()) == projects - 1


def test_a_snapshot_brings_the_state_back(started_tools: SandboxTools, tmp_path: Path) -> None:
    """A snapshot is saved to a file and restored from it."""
    started_tools.make_order(what="new")
    file = str(tmp_path / "state.json")
    started_tools.snapshot(file=file)
    started_tools.make_order(order_id="last", what="paid")
    started_tools.snapshot(file=file, action="restore")
    assert " is new: 12.95 EUR" in started_tools.explain_order()
    assert json.loads(Path(file).read_text())


SUITE = """
def test_a_sale(payment_sandbox):
    order = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json={"currency": "EUR", "amount": 5})
    assert order.json()["status"] == "new"
"""


def test_a_rehearsal_reports_in_parts(tools: SandboxTools, tmp_path: Path) -> None:
    """The first call runs the suite, and further calls return its report."""
    (tmp_path / "test_sale.py").write_text(SUITE)
    report = tools.rehearse(
        command=f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:randomly -W ignore",
        folder=str(tmp_path),
        budget="5s",
    )
    assert "1 test rehearsed in" in report
    assert tools.rehearse() == report


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path) -> None:
    """Without the SDK, the error is one line with the command that installs it."""
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError('No module named mcp')")
    refused = run("mcp", PYTHONPATH=str(tmp_path))
    assert refused.returncode == 2
    assert refused.stderr.startswith("payment-sandbox: mcp needs payment-sandbox[mcp]: ")
    assert refused.stderr.endswith(f"pip install '{ROOT}[mcp]'\n")


def test_agents_let_a_second_payment_arrive(started_tools: SandboxTools) -> None:
    """The bank credits the transfer that the customer gave up, named by its transaction."""
    started_tools._client.change_settings(mode="live")
    placed = started_tools._client.call("POST", "/v1/orders/", {"currency": "EUR", "amount": 1000})
    for method in ("bank-transfer", "credit-card"):
        started_tools.act(action="choose", details=json.dumps({"payment_method": method}))
    started_tools.act()
    transfer = started_tools._client.order(placed["id"])["transactions"][0]["id"]
    credit = json.dumps({"transaction_id": transfer})
    started_tools.act(actor="bank", action="credit", details=credit)
    path = f"/v1/orders/{placed['id']}/?fields[]=amount_details"
    assert started_tools._client.call("GET", path)["amount_details"]["received"] == 2000
    with pytest.raises(ToolError, match="has no transaction"):
        started_tools.act(actor="bank", action="credit", details='{"transaction_id": "another"}')


def test_agents_play_every_party_and_set_faults(started_tools: SandboxTools) -> None:
    """An agent acts, resends a webhook, switches the scenario, and sees which fault has matched."""
    started_tools.make_order(what="new")
    with pytest.raises(ToolError, match="must be one of: credit, for the actor bank"):
        started_tools.act(actor="bank", action="pay")
    assert "is completed" in started_tools.act(action="pay", details='{"card": "frictionless"}')
    assert "attempts: 2" in started_tools.redeliver()
    assert '"name": "webhook-lost"' in started_tools.scenario(name="webhook-lost")
    fault = {"when": {"attempt": 1}, "then": {"answer": 503}}
    assert '"matches": 0' in started_tools.faults(json.dumps({"webhooks": [fault]}))
    with pytest.raises(ToolError, match="document: must be JSON"):
        started_tools.faults("{")
