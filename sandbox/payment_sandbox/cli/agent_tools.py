"""The sandbox as tools for coding agents: eight, each for a task."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import wraps
from itertools import chain
from pathlib import Path
from shutil import which
from textwrap import wrap
from typing import Any, Final, ParamSpec

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.client.history import review
from payment_sandbox.client.triggers import TriggerImpossible, trigger
from payment_sandbox.methods import ALL
from payment_sandbox.operations.recipes import RECIPES
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import Server, build, description
from payment_sandbox.web.answers.records import OrderOverview
from payment_sandbox.web.docs.contents import page as contents_of
from payment_sandbox.web.docs.library import NAMES
from payment_sandbox.web.docs.views import matching, plain_answers, sections_of

ANSWER_BYTES_MAX: Final = 2000
PART_BYTES: Final = ANSWER_BYTES_MAX - 200  # beside it, an answer says how to get the next part
CHARACTER_BYTES_MAX: Final = 4
PROBLEM_BYTES_MAX: Final = 1500
RESULTS_MAX: Final = 5
LAST: Final = "last"
CARD: Final = "credit-card"
METHODS: Final = tuple(method.name for method in ALL)
REHEARSE_SECONDS: Final = 1800.0
Given = ParamSpec("Given")


class ToolProblem(Exception):
    """A tool cannot do what it was asked for; the message names the next step."""


def part_of(text: str, part: int, more: str) -> str:
    """One part of a text, below the limit of an answer, and how to get the next one with the call ``more``.

    Raises:
        ToolProblem: there is no such part.
    """
    parts = list(_parts(text))
    if not 1 <= part <= len(parts):
        raise ToolProblem(f"there is no part {part}; the answer has {len(parts)}. Next: {more.format(1)}")
    if len(parts) == 1:
        return parts[0]
    following = f"; for more: {more.format(part + 1)}" if part < len(parts) else ""
    return f"{parts[part - 1]}\n[part {part} of {len(parts)}{following}]"


def _parts(text: str) -> Iterator[str]:
    """The text in parts of whole lines; a line that is longer than a part is cut."""
    part: list[str] = []
    size = 0
    for line in chain.from_iterable(map(_pieces, text.split("\n"))):
        length = len(line.encode()) + 1
        if part and size + length > PART_BYTES:
            yield "\n".join(part)
            part, size = [], 0
        part.append(line)
        size += length
    yield "\n".join(part)


def _pieces(line: str) -> list[str]:
    """The line, in pieces that are short enough if it is too long itself."""
    if len(line.encode()) < PART_BYTES:
        return [line]
    return wrap(line, PART_BYTES // CHARACTER_BYTES_MAX, drop_whitespace=False)


def naming_next(step: str) -> Callable[[Callable[Given, str]], Callable[Given, str]]:
    """Make every failure of a tool name the step that gets on."""

    def named(tool: Callable[Given, str]) -> Callable[Given, str]:
        @wraps(tool)
        def run(*args: Given.args, **kwargs: Given.kwargs) -> str:
            try:
                return tool(*args, **kwargs)
            except (
                SandboxError,
                TriggerImpossible,
                OSError,
                ValueError,
                subprocess.SubprocessError,
            ) as problem:
                said = str(problem).encode()[:PROBLEM_BYTES_MAX].decode(errors="ignore")
                allowed = problem.allowed if isinstance(problem, SandboxError) else []
                possible = f" Possible now: {', '.join(allowed)}." if allowed else ""
                end = "" if said.endswith(("?", ".")) else "."
                raise ToolProblem(f"{said}{end}{possible} Next: {step}") from None

        return run

    return named


class SandboxTools:
    """The tools; they share a server and a project from ``start`` on."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Find a running server in the environment, as the command line does."""
        self._environment = environment
        self._server: Server | None = None
        self._sandbox: SandboxClient | None = None
        self._answers: dict[str, str] = {}  # the last ones that may be too long for one part

    @naming_next("search(words='settings'), or unset SANDBOX_URL if nothing runs there")
    def start(self, webhook_url: str = "", mode: str = "test", scenario: str = "") -> str:
        """Start the sandbox with an empty project, and get the address and the key for the shop under test.

        Call it again for another empty project. webhook_url: where the shop takes webhooks. mode: test, or
        live for bank transfers that arrive. scenario: what goes wrong, such as webhook-lost; empty for
        nothing.
        """
        token = self._environment.get("SANDBOX_CONTROL_TOKEN")
        settings = {"clock": "frozen", "mode": mode, **({"webhook_url": webhook_url} if webhook_url else {})}
        self._sandbox = SandboxClient(self._url(), "", control_token=token).create_project(**settings)
        if scenario:
            self._sandbox.scenario(scenario)
        base_url, key = self._sandbox.base_url, self._sandbox.api_key
        return (
            f"The sandbox runs at {base_url}; its dashboard is there, too.\n"
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
            self._server = build(ServerConfig(webhooks_stay_here=True))
            self._server.start()
        return self._server.url

    @naming_next(
        "make_order(what='paid'); start(mode='live') for bank transfers; explain_order() for what is possible"
    )
    def make_order(self, what: str = "paid", order_id: str = "", amount: int = 1295, method: str = "") -> str:
        """Make an order in a state that shops have to handle, or bring an order of the shop there.

        what: hosted, new, paid, authorized, captured, declined, cancelled, withdrawn, expired, refund,
        refund-part, transfer, transfer-part, transfer-late, screening-declined, screening-slow. order_id:
        an order that the shop has created, or last; empty makes a new one of amount cents. method: such as
        bank-redirect-nl; the customer of an order with a hosted page chooses it.
        """
        if what not in RECIPES:
            raise ValueError(f"there is no order {what!r}; there are: {', '.join(RECIPES)}")
        if method and method not in METHODS:  # as a call, it would be a mistake of the shop
            raise ValueError(f"there is no method {method!r}; there are: {', '.join(METHODS)}")
        if order_id:
            made = trigger(self._client, what, self._chosen(self._id(order_id), method))
        else:
            by: dict[str, Any] = {"transactions": [{"payment_method": method}]} if method else {}
            made = trigger(self._client, what, amount=amount, **by)
        return f"{_state(made)}\nNext: explain_order(order_id='{made['order']['id']}')"

    def _chosen(self, order_id: str, method: str) -> str:
        """Let the customer of a hosted page choose how to pay, unless that is done."""
        possible = self._client.overview(order_id)["actions"]["customer"]
        if "choose" in possible and ("pay" not in possible or method):
            self._client.act(order_id, "customer", "choose", payment_method=method or CARD)
        return order_id

    @naming_next("advance(by='PT30M'), or advance(until='next') for what is due next")
    def advance(self, by: str = "", until: str = "", part: int = 1) -> str:
        """Let time pass: expiries, captures and retries happen, and webhooks are delivered and answered.

        by: a period such as PT30M or P7D. until: next (what is due next), idle (all that is due), or a time
        such as 2027-01-01T00:00:00Z. part: of the answer of the last advance, which needs no period.
        """
        clock, to = self._client.clock, None
        if by or until or "advance" not in self._answers:
            if until not in ("", "next", "idle"):
                to, until = datetime.fromisoformat(until), ""
            passed = clock.advance(by or None, to=to, until=until or None)
            lines = [f"{event['at']}  {event['label']} of {event['order_id']}" for event in passed.events]
            stopped = ["It stopped early: advance again to go on."] if passed.stopped else []
            begin = f"It is {passed.ended.isoformat()}; events: {len(lines)}."
            self._answers["advance"] = "\n".join([begin, *stopped, *lines])
        return part_of(self._answers["advance"], part, "advance(part={})")

    @naming_next("make_order(what='new'), or let the shop create an order")
    def explain_order(self, order_id: str = LAST, part: int = 1) -> str:
        """Explain an order: its state, what is possible and due, all that happened, and what went wrong.

        order_id: an id, or last for the newest order. part: of an answer that is too long.
        """
        known = self._id(order_id)
        text = f"{_state(self._client.overview(known))}\n\n{self._client.report(known)}"
        return part_of(text, part, f"explain_order(order_id='{known}', part={{}})")

    @naming_next("start()")
    def review(self, part: int = 1) -> str:
        """List the mistakes of the shop so far: what happened, what it costs, and what to do.

        part: of an answer that is too long.
        """
        findings = review(self._client)
        if not findings:
            return (
                "No findings. Next: rehearse(command='pytest tests'), which tries what has not happened yet."
            )
        return part_of("\n\n".join(map(str, findings)), part, "review(part={})")

    @naming_next("rehearse(command='pytest tests') with a suite that passes as it is")
    def rehearse(self, command: str = "", folder: str = ".", budget: str = "60s", part: int = 1) -> str:
        """Run a suite with one thing changed at a time, and report what the shop does not survive.

        command: runs the suite, such as "pytest tests" or "npm test". folder: where. budget: for all runs,
        such as 90s. part: of the answer of the last rehearsal, which needs no command.
        """
        if command:
            words = shlex.split(command)
            own = [sys.executable, "-m", "payment_sandbox", "rehearse", "--budget", budget, "--", *words]
            if which(words[0]) is None and not (Path(folder) / words[0]).exists():
                raise ValueError(f"there is no program {words[0]!r}")
            is_python = "pytest" in words[:3]
            program = (
                [*words, "--payment-rehearse", f"--payment-rehearse-budget={budget}"] if is_python else own
            )
            ran = subprocess.run(
                program,
                cwd=Path(folder),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=REHEARSE_SECONDS,
                check=False,
            )
            self._answers["rehearse"] = f"exit code {ran.returncode}\n{ran.stdout}{ran.stderr}"
        if "rehearse" not in self._answers:
            raise ValueError("nothing was rehearsed yet")
        return part_of(self._answers["rehearse"], part, "rehearse(part={})")

    @naming_next("search(words='webhook retry')")
    def search(self, words: str = "", page: str = "", part: int = 1) -> str:
        """Search the documentation of the API and the sandbox, or read one of its pages.

        words: sections that have all of them are listed. page: the name of a page, such as agents,
        webhooks, mistakes or merchant-api. part: of an answer that is too long.
        """
        if page:
            if page not in NAMES:
                raise ValueError(f"there is no page {page!r}; there are: {', '.join(NAMES)}")
            return part_of(contents_of(page, description).text, part, f"search(page='{page}', part={{}})")
        if not words.strip():
            raise ValueError("words is empty, and so is page")
        results = matching(sections_of(lambda name: contents_of(name, description)), words)
        lines = [answer.text for answer in plain_answers(words)]
        lines += [
            f"{section.page}: {section.heading or section.page_title}\n  {excerpt}"
            for section, _, excerpt in results[:RESULTS_MAX]
        ]
        if not lines:
            raise ValueError(f"no section has all of: {words!r}")
        return part_of(
            "\n".join([*lines, "Next: search(page='...') reads a page."]), part, "search(page='...')"
        )

    @naming_next("snapshot(file='state.json'), then snapshot(file='state.json', action='restore')")
    def snapshot(self, file: str = "", action: str = "save") -> str:
        """Save the state of the project into a file, or restore it: orders, clock, webhooks, what is due.

        file: its path. action: save or restore.
        """
        if not file:
            raise ValueError("file is empty")
        path = Path(file)
        if action == "restore":
            self._client.restore(json.loads(path.read_text(encoding="utf-8")))
            return f"Restored {path}; it is {self._client.clock.now.isoformat()}. Next: explain_order()"
        if action != "save":
            raise ValueError(f"action is save or restore, not {action!r}")
        path.write_text(json.dumps(self._client.snapshot()), encoding="utf-8")
        return f"Saved into {path}. Next: snapshot(file='{file}', action='restore') when you want it back"

    @property
    def _client(self) -> SandboxClient:
        if self._sandbox is None:
            raise ToolProblem("the sandbox has not been started. Next: start()")
        return self._sandbox

    def _id(self, order_id: str) -> str:
        if order_id != LAST:
            return order_id
        newest = self._client.orders(limit=1)
        if not newest:
            raise ValueError("there is no order yet")
        return newest[0]["id"]

    def close(self) -> None:
        """Delete the project of a server that others use, or stop the own one."""
        if self._server is not None:
            self._server.stop()
        elif self._sandbox is not None:
            with suppress(Exception):  # the server may be gone
                self._sandbox.delete_project()


def _state(overview: OrderOverview) -> str:
    order = overview["order"]
    lines = [f"order {order['id']} is {order['status']}: {order['amount']} cents"]
    lines += [f"  {attempt['payment_method']} is {attempt['status']}" for attempt in order["transactions"]]
    actions: Mapping[str, Any] = overview["actions"]
    possible = {actor: [_named(each) for each in names] for actor, names in actions.items() if names}
    lines += [f"  possible for the {actor}: {', '.join(names)}" for actor, names in possible.items()]
    lines += [f"  due {due['at']}: {due['label']}" for due in overview["agenda"]]
    lines += [f"  page: {page}" for page in overview["pages"]]
    return "\n".join(lines)


def _named(action: Any) -> str:
    return str(action["action"] if isinstance(action, Mapping) else action)
