"""The tools of the sandbox for coding agents."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import wraps
from inspect import signature
from itertools import chain
from pathlib import Path
from shutil import which
from textwrap import wrap
from typing import Any, Final, ParamSpec

from mcp.server.mcpserver.exceptions import ToolError

from payment_sandbox.cli.remote.order_commands import overview_lines
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.control_commands import ControlCommands
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.client.plain import path_of
from payment_sandbox.client.project_review import review
from payment_sandbox.client.triggers import TriggerImpossible, trigger
from payment_sandbox.extensions import installable
from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.methods import ALL_METHODS
from payment_sandbox.operations.recipes import RECIPES
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import Server, build
from payment_sandbox.ui.docs.library import PAGE_NAMES, read_source
from payment_sandbox.ui.docs.sections import search
from payment_sandbox.web.answers.records import OrderOverview

ANSWER_BYTES_MAX: Final = 2000
PART_BYTES: Final = ANSWER_BYTES_MAX - 200  # the remaining bytes are for the call that gets the next part
CHARACTER_BYTES_MAX: Final = 4
PROBLEM_BYTES_MAX: Final = 1500
RESULTS_MAX: Final = 5
NEWEST_ORDER: Final = "last"
CARD: Final = "credit-card"
METHODS: Final = tuple(method.name for method in ALL_METHODS)
REHEARSE_SECONDS: Final = 1800.0
Arguments = ParamSpec("Arguments")


def select_part(text: str, part: int, more: str) -> str:
    """Return one part of a text, within the size limit; append the call ``more``, which gets the next part.

    Raises:
        ToolError: the text has no such part.
    """
    parts = list(_split_text(text))
    if not 1 <= part <= len(parts):
        raise ToolError(f"there is no part {part}; the answer has {len(parts)}. Next: {more.format(1)}")
    if len(parts) == 1:
        return parts[0]
    hint = f"; for more: {more.format(part + 1)}" if part < len(parts) else ""
    return f"{parts[part - 1]}\n[part {part} of {len(parts)}{hint}]"


def _split_text(text: str) -> Iterator[str]:
    """Split a text into parts of whole lines; split lines that are longer than a part."""
    part: list[str] = []
    size = 0
    for line in chain.from_iterable(map(_split_line, text.split("\n"))):
        length = len(line.encode()) + 1
        if part and size + length > PART_BYTES:
            yield "\n".join(part)
            part, size = [], 0
        part.append(line)
        size += length
    yield "\n".join(part)


def _split_line(line: str) -> list[str]:
    """Split a line into pieces no longer than a part."""
    if len(line.encode()) < PART_BYTES:
        return [line]
    return wrap(line, PART_BYTES // CHARACTER_BYTES_MAX, drop_whitespace=False)


def name_next_step(step: str) -> Callable[[Callable[Arguments, str]], Callable[Arguments, str]]:
    """Add the next step to the message of every failure of a tool."""

    def decorate(tool: Callable[Arguments, str]) -> Callable[Arguments, str]:
        @wraps(tool)
        def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> str:
            try:
                return tool(*args, **kwargs)
            except (
                SandboxError,
                TriggerImpossible,
                OSError,
                ValueError,
                subprocess.SubprocessError,
            ) as problem:
                message = str(problem).encode()[:PROBLEM_BYTES_MAX].decode(errors="ignore")
                allowed = problem.allowed if isinstance(problem, SandboxError) else []
                possible = f" Possible now: {', '.join(allowed)}." if allowed else ""
                end = "" if message.endswith(("?", ".")) else "."
                raise ToolError(f"{message}{end}{possible} Next: {step}") from None

        return run

    return decorate


class SandboxTools:
    """The tools; they share the server and the project of ``start``."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Use the server that the environment variables name, as the command line does."""
        self._environment = environment
        self._server: Server | None = None
        self._sandbox: SandboxClient | None = None
        self._answers: dict[str, str] = {}  # each tool's last answer, for calls that get its other parts

    @name_next_step("search(words='settings'), or unset SANDBOX_URL if no server runs at that address")
    def start(self, webhook_url: str = "", mode: str = "test", scenario: str = "") -> str:
        """Start the sandbox with an empty project, and get the address and the key for the shop under test.

        Call it again for another empty project. webhook_url: the shop's webhook address. mode: test, or
        live for bank transfers that arrive. scenario: a ready-made scenario, such as webhook-lost.
        """
        token = self._environment.get("SANDBOX_CONTROL_TOKEN")
        settings = {"clock": "frozen", "mode": mode, **({"webhook_url": webhook_url} if webhook_url else {})}
        self._sandbox = SandboxClient(self._url(), "", control_token=token).create_project(**settings)
        if scenario:
            self._sandbox.scenario(scenario)
        base_url, key = self._sandbox.base_url, self._sandbox.api_key
        return (
            f"The sandbox runs at {base_url}, with its dashboard.\n"
            f"For the shop: base URL {base_url}, API key {key} (HTTP Basic: the key is the user name).\n"
            f"Webhooks go to {webhook_url or 'the webhook_url of each order: the project has none'}.\n"
            f"The clock is frozen at {self._sandbox.clock.now.isoformat()}.\n"
            "Next: let the shop create an order, or call make_order; then explain_order."
        )

    def _url(self) -> str:
        running = self._environment.get("SANDBOX_URL")
        if running:
            return running
        if self._server is None:
            self._server = build(ServerConfig(webhooks_only_local=True))
            self._server.start()
        return self._server.url

    @name_next_step(
        "make_order(what='paid'); start(mode='live') for bank transfers; explain_order() lists actions"
    )
    def make_order(self, what: str = "paid", order_id: str = "", amount: int = 1295, method: str = "") -> str:
        """Create an order in a state that shops have to handle, or bring an order of the shop to this state.

        what: hosted, new, paid, authorized, captured, declined, cancelled, withdrawn, expired, refund,
        refund-part, transfer, transfer-part, transfer-late, screening-declined, screening-slow. order_id:
        an order of the shop, or last; if empty, a new order of amount cents is created. method: such as
        bank-redirect-nl; the customer of an order with a hosted page chooses it.
        """
        if what not in RECIPES:
            raise ValueError(f"{what!r} is not a state of orders; the states are: {', '.join(RECIPES)}")
        if method and method not in METHODS:  # an invalid call would count as the shop's mistake
            raise ValueError(f"{method!r} is not a payment method; the methods are: {', '.join(METHODS)}")
        if order_id:
            overview = trigger(self._client, what, self._ensure_method(self._order_id(order_id), method))
        else:
            fields: dict[str, Any] = {"transactions": [{"payment_method": method}]} if method else {}
            overview = trigger(self._client, what, amount=amount, **fields)
        return f"{self._describe_state(overview)}\nNext: explain_order(order_id='{overview['order']['id']}')"

    def _describe_state(self, overview: OrderOverview) -> str:
        return "\n".join(overview_lines(overview, self._client.base_url))

    def _ensure_method(self, order_id: str, method: str) -> str:
        """Choose a payment method as the customer of a hosted page, unless one is chosen."""
        possible = self._client.overview(order_id)["actions"]["customer"]
        if "choose" in possible and ("pay" not in possible or method):
            self._client.act(order_id, "customer", "choose", payment_method=method or CARD)
        return order_id

    @name_next_step("explain_order(), which lists the possible actions")
    def act(
        self,
        action: str = "pay",
        actor: str = "customer",
        order_id: str = NEWEST_ORDER,
        amount: int = 0,
        details: str = "",
    ) -> str:
        """Act on an order as the customer, the bank, a screening or the processor.

        action: of a customer visit, pay, cancel, fail or choose; of a bank credit; of a screening approve,
        decline or error; of a processor settle or fail. order_id: an id, or last. amount: cents of a bank's
        credit. details: more as JSON, such as {"card": "challenge"} or {"transaction_id": "..."}.
        """
        more = {**({"amount": amount} if amount else {}), **_read_object(details, "details")}
        path = path_of("/control/orders/{}/act/", self._order_id(order_id))
        order = self._client.call("POST", path, {"actor": actor, "action": action, **more})
        return self._describe_state(self._client.overview(order["id"]))

    @name_next_step("explain_order(), which lists the webhooks of an order")
    def redeliver(self, order_id: str = NEWEST_ORDER, after: str = "") -> str:
        """Resend the newest webhook of an order, now or after a period of sandbox time.

        order_id: an id, or last. after: a period such as PT10M.
        """
        known = self._order_id(order_id)
        webhooks = self._client.webhooks(known)
        if not webhooks:
            raise ValueError(f"order {known} has no webhooks; start(webhook_url='...') sets their address")
        sent = self._client.redeliver(webhooks[-1]["id"], after=after or None)
        return (
            f"webhook {sent['status']} to {sent['url']}: {sent['state']}, attempts: {len(sent['attempts'])}"
        )

    @name_next_step("scenario(), which shows the active one; search(page='scenarios') lists them all")
    def scenario(self, name: str = "", document: str = "") -> str:
        """Show the active scenario with the number of matches of each rule, or switch to another.

        name: a ready scenario, such as webhook-lost. document: a whole scenario as JSON instead.
        """
        if name or document:
            self._client.scenario(_read_object(document, "document") if document else name)
        return select_part(json.dumps(self._client.active_scenario()), 1, "scenario()")

    @name_next_step("faults(), which shows the faults; search(page='scenarios') describes them")
    def faults(self, document: str = "") -> str:
        """Show the faults with the number of matches of each, or replace them.

        document: JSON such as {"faults": [{"when": {"method": "POST", "path": "/v1/orders/"}, "then":
        {"status": 503}}], "webhooks": [{"when": {"attempt": 1}, "then": {"answer": 503}}]}; {} removes all.
        """
        if document:
            self._client.put_faults(_read_object(document, "document"))
        return select_part(json.dumps(self._client.active_faults()), 1, "faults()")

    @name_next_step("advance(by='PT30M'), or advance(until='next') for the next event")
    def advance(self, by: str = "", until: str = "", part: int = 1) -> str:
        """Advance the clock: run expiries, captures and retries, and deliver webhooks.

        by: a period such as PT30M or P7D. until: next (the next event), idle (all pending events), or a time
        such as 2027-01-01T00:00:00Z. part: a part of the last advance's answer, without advancing again.
        """
        clock, to = self._client.clock, None
        if by or until or "advance" not in self._answers:
            if until not in ("", "next", "idle"):
                to, until = datetime.fromisoformat(until), ""
            result = clock.advance(by or None, to=to, until=until or None)
            lines = [f"{event['at']}  {_name_order(event)}" for event in result.events]
            stopped = ["It stopped early: advance again to continue."] if result.stopped else []
            heading = f"It is {result.ended.isoformat()}; events: {len(lines)}."
            self._answers["advance"] = "\n".join([heading, *stopped, *lines])
        return select_part(self._answers["advance"], part, "advance(part={})")

    @name_next_step("make_order(what='new'), or let the shop create an order")
    def explain_order(self, order_id: str = NEWEST_ORDER, part: int = 1) -> str:
        """Explain an order: its state, possible actions, pending events, history and problems.

        order_id: an id, or last for the newest order. part: a part of a long answer.
        """
        known = self._order_id(order_id)
        text = f"{self._describe_state(self._client.overview(known))}\n\n{self._client.report(known)}"
        return select_part(text, part, f"explain_order(order_id='{known}', part={{}})")

    @name_next_step("control(), which lists the calls")
    def control(self, call: str = "", arguments: str = "", part: int = 1) -> str:
        """Make any call of the control API, or list them all.

        call: its name, such as timeline; if empty, lists the calls with their arguments. arguments: JSON such
        as {"order_id": "..."}. part: a part of the last answer, without another call.
        """
        client, calls = self._client, control_calls()
        if call:
            given = _read_object(arguments, "arguments")
            self._answers["control"] = json.dumps(_make_call(client, calls, call, given))
        elif part == 1:
            self._answers["control"] = "\n".join(
                f"{name}({', '.join(list(signature(method).parameters)[1:])})"
                for name, method in calls.items()
            )
        return select_part(self._answers.get("control", ""), part, "control(part={})")

    @name_next_step("start()")
    def review(self, part: int = 1) -> str:
        """List the mistakes of the shop so far, each with its consequences and a remedy.

        part: a part of a long answer.
        """
        findings = review(self._client)
        if not findings:
            return "No findings. Next: rehearse(command='pytest tests'), which tries more failures."
        return select_part("\n\n".join(map(str, findings)), part, "review(part={})")

    @name_next_step("rehearse(command='pytest tests') with a suite that passes without changes")
    def rehearse(self, command: str = "", folder: str = ".", budget: str = "60s", part: int = 1) -> str:
        """Run a test suite with one fault at a time, and report the faults that break the shop.

        command: runs the suite, such as "pytest tests" or "npm test". folder: its working directory. budget:
        for all runs, such as 90s. part: a part of the last rehearsal's answer, without a new run.
        """
        if command:
            words = shlex.split(command)
            runner = [sys.executable, "-m", "payment_sandbox", "rehearse", "--budget", budget, "--", *words]
            if which(words[0]) is None and not (Path(folder) / words[0]).exists():
                raise ValueError(f"there is no program {words[0]!r}")
            is_python = "pytest" in [Path(word).name for word in words[:3]]
            program = (
                [*words, "--payment-rehearse", f"--payment-rehearse-budget={budget}"] if is_python else runner
            )
            completed = subprocess.run(
                program,
                cwd=Path(folder),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=REHEARSE_SECONDS,
                check=False,
            )
            if is_python and "unrecognized arguments: --payment-rehearse" in completed.stderr:
                plugin = installable("pytest-payment-sandbox")
                raise ValueError(
                    f"{words[0]} has no plugin for this; in its environment, pip install '{plugin}'"
                )
            self._answers["rehearse"] = (
                f"exit code {completed.returncode}\n{completed.stdout}{completed.stderr}"
            )
        if "rehearse" not in self._answers:
            raise ValueError("there is no rehearsal yet; give a command")
        return select_part(self._answers["rehearse"], part, "rehearse(part={})")

    @name_next_step("search(words='webhook retry')")
    def search(self, words: str = "", page: str = "", part: int = 1) -> str:
        """Search the documentation of the API and the sandbox, or read one of its pages.

        words: lists the sections that contain most of the words. page: the name of a page, such as agents,
        webhooks, mistakes or pytest. part: a part of a long answer.
        """
        if page:
            if page not in PAGE_NAMES:
                raise ValueError(f"there is no page {page!r}; the pages are: {', '.join(PAGE_NAMES)}")
            return select_part(read_source(page), part, f"search(page='{page}', part={{}})")
        if not words.strip():
            raise ValueError("give words or page")
        lines = [
            f"{section.page}: {section.heading or section.page_title}"
            for section in search(words)[:RESULTS_MAX]
        ]
        if not lines:
            raise ValueError(f"no section contains most of: {words!r}")
        return select_part(
            "\n".join([*lines, "Next: search(page='...') reads a page."]), part, "search(page='...')"
        )

    @name_next_step("snapshot(file='state.json'), then snapshot(file='state.json', action='restore')")
    def snapshot(self, file: str = "", action: str = "save") -> str:
        """Save the state of the project to a file, or restore it: orders, clock, webhooks, pending events.

        file: its path. action: save or restore.
        """
        if not file:
            raise ValueError("file is empty")
        path = Path(file)
        if action == "restore":
            self._client.restore(json.loads(path.read_text(encoding="utf-8")))
            return f"Restored {path}; it is {self._client.clock.now.isoformat()}. Next: explain_order()"
        if action != "save":
            raise ValueError(f"action must be save or restore, not {action!r}")
        path.write_text(json.dumps(self._client.snapshot()), encoding="utf-8")
        return f"Saved to {path}. Next: snapshot(file='{file}', action='restore') to restore it"

    @property
    def _client(self) -> SandboxClient:
        if self._sandbox is None:
            raise ToolError("the sandbox is not running. Next: start()")
        return self._sandbox

    def _order_id(self, order_id: str) -> str:
        if order_id != NEWEST_ORDER:
            return order_id
        newest = self._client.orders(limit=1)
        if not newest:
            raise ValueError("there are no orders yet")
        return newest[0]["id"]

    def close(self) -> None:
        """Stop the tools' own server, or delete their project on a shared server."""
        if self._server is not None:
            self._server.stop()
        elif self._sandbox is not None:
            with suppress(Exception):  # the server may have stopped
                self._sandbox.delete_project()


TOOLS: Final = tuple(name for name in vars(SandboxTools) if not name.startswith("_") and name != "close")


def _name_order(event: Mapping[str, Any]) -> str:
    label, order_id = event["label"], event["order_id"]
    return label if order_id is None or order_id in label else f"{label} of {order_id}"


def control_calls() -> dict[str, Callable[..., object]]:
    """Return the calls of the control API by name."""
    return {
        name: method
        for name, method in vars(ControlCommands).items()
        if callable(method) and not name.startswith("_") and name != "call"
    }


def _make_call(
    client: SandboxClient,
    calls: Mapping[str, Callable[..., object]],
    name: str,
    arguments: Mapping[str, object],
) -> object:
    if name not in calls:
        raise ValueError(f"there is no call {name!r}{did_you_mean(nearest_word(name, list(calls)))}")
    parameters = signature(calls[name])
    try:
        parameters.bind(client, **arguments)
    except TypeError as wrong:
        listed = ", ".join(list(parameters.parameters)[1:]) or "none"
        raise ValueError(f"{name}: {wrong}; its arguments are: {listed}") from None
    call: Callable[..., object] = getattr(client, name)
    return call(**arguments)


def _read_object(text: str, name: str) -> dict[str, Any]:
    """Read an argument that is a JSON object; empty text is an empty object."""
    try:
        data = json.loads(text or "{}")
    except ValueError as error:
        raise ValueError(f"{name}: must be JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{name}: must be a JSON object, not {text[:40]!r}")
    return data


def wrong_argument(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """Describe the first unknown argument of a call, with the nearest name, or the first wrong number."""
    if tool not in TOOLS:
        return None  # the SDK refuses it
    known = dict(signature(getattr(SandboxTools, tool)).parameters)
    del known["self"]
    listed = ", ".join(known)
    for name, value in arguments.items():
        if name not in known:
            advice = did_you_mean(nearest_word(name, list(known)))
            return f"{tool} has no argument {name!r}{advice or f'; its arguments are: {listed}'}"
        if known[name].annotation is int and type(value) is not int:
            expected = "whole number of cents, such as 1295" if name == "amount" else "whole number"
            return f"{name}: must be a {expected}; got {value!r}"
    return None
