"""A typed Python client of the control API, for tests and tools.

    client = SandboxClient("http://127.0.0.1:8080", "sandbox-key")
    client.clock.advance("PT30M")

Every method raises ``SandboxError``, with all violations, if the server refuses the call.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple

from payment_sandbox.client.control_commands import ControlCommands
from payment_sandbox.client.errors import SandboxError, ends_at_caller, make_readable
from payment_sandbox.client.plain import is_effect, path_of, to_json_value, to_query
from payment_sandbox.client.sandbox_clock import Advance, SandboxClock
from payment_sandbox.orders.actions import ActionName, Actor
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.scenarios.effects import Fault, RequestEffect, WebhookEffect
from payment_sandbox.serving.sessions import direct_session, requests
from payment_sandbox.web.answers import records as answers

__tracebackhide__ = ends_at_caller
REFUSED_STATUS: Final = 400
CONTROL_TOKEN_PATHS: Final = ("/control/projects/", "/control/projects/review/")
RULE_LISTS: Final = ("faults", "webhooks")
JSON: Final = "application/json"
YAML: Final = "application/yaml"
TIMEOUT_SECONDS: Final = 90.0  # longer than any wait that the server allows


def wrap_effects(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario or faults as a document, with each bare effect wrapped in a rule."""
    wrapped = {**document}
    for key in RULE_LISTS:
        if isinstance(document.get(key), Sequence):
            wrapped[key] = [{"then": rule} if is_effect(rule) else rule for rule in document[key]]
    return wrapped


ScenarioChoice = str | Path | Mapping[str, Any]
"""A name, a file or a document."""


def as_sent(scenario: ScenarioChoice) -> object:
    """Return a name or a document as the creation of a project takes it.

    Raises:
        TypeError, ValueError: the document is not JSON.
    """
    if not isinstance(scenario, Mapping):
        return scenario
    document: object = json.loads(json.dumps(wrap_effects(scenario), default=to_json_value))
    return document


def raise_refusal(answer: "requests.Response") -> None:
    """Raise ``SandboxError`` if the server refused the call."""
    if answer.status_code < REFUSED_STATUS:
        return
    try:
        error = answer.json().get("error", {})
    except ValueError:
        error = {}
    raise SandboxError(answer.status_code, error)


def stream_events(answer: "requests.Response") -> "Generator[Event, None, None]":
    """Yield the events of a stream until it ends."""
    fields: dict[str, str] = {}
    with answer:
        for line in answer.iter_lines(chunk_size=1, decode_unicode=True):
            name, _, value = line.partition(": ")
            fields[name] = value
            if name == "data":
                yield Event(int(fields["id"]), fields["event"], json.loads(value))


__all__ = ["Advance", "Event", "Json", "SandboxClient", "SandboxClock", "SandboxError", "Violation"]

Json = dict[str, Any]
"""A JSON object, as received."""

SCHEDULED_ACTION: Final = "action"  # the kind of an agenda entry for a scenario's customer or bank
TEST_CALLER_HEADER: Final = {"Sandbox-Caller": "test"}
SCENARIO_SUFFIXES: Final = (".yaml", ".yml", ".json")


class Event(NamedTuple):
    """An event of a project, such as ``status``, ``webhook``, ``request``, ``clock`` or ``decision``."""

    number: int
    kind: str
    data: Mapping[str, Any]


class SandboxClient(ControlCommands):
    """One project of a running sandbox."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        session: Any = None,
        control_token: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """Call the server at ``base_url`` as the project of ``api_key``.

        Uses ``session``, a ``requests.Session`` or the like, or by default its own session without proxies.
        """
        self._timeout_seconds = timeout_seconds
        self.base_url = base_url.rstrip("/")
        self.api_key = api_key
        self.clock = SandboxClock(self)
        self._control_token = control_token
        self.session = session or direct_session()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Make any call to the merchant or control API; return the parsed body. Bytes are sent as YAML.

        Raises:
            SandboxError: the server refused the call.
        """
        sent, auth = dict(headers or {}), (self.api_key, "")
        if path.startswith("/v1/"):
            sent.setdefault("Sandbox-Caller", "trigger")  # the review does not count the call as the shop's
        if path in CONTROL_TOKEN_PATHS and self._control_token is not None:
            sent, auth = {"Authorization": f"Bearer {self._control_token}"}, None  # type: ignore[assignment]
        data = body if isinstance(body, bytes | None) else json.dumps(body, default=to_json_value).encode()
        if body is not None:
            sent["Content-Type"] = YAML if data is body else JSON
        try:
            answer = self.session.request(
                method,
                f"{self.base_url}{path}",
                data=data,
                params=to_query(query or {}),
                headers=sent,
                auth=auth,
                timeout=self._timeout_seconds,
                allow_redirects=False,
            )
        except OSError as error:  # the base class of exceptions in requests
            raise make_readable(error, self.base_url) from None
        raise_refusal(answer)
        return answer.json() if answer.content else {}

    def close(self) -> None:
        """Close the connections, including those of derived clients; the next call reconnects."""
        self.session.close()

    # The project

    def health(self) -> answers.Health:
        """Return ``{"status": "ok", "version": …}`` once the server is ready (CTL-05)."""
        return self.call("GET", "/health/")

    def create_project(self, **settings: Any) -> "SandboxClient":
        """Create another project; return a client for it (CTL-06)."""
        api_key = self.new_project(settings)["api_key"]
        return SandboxClient(self.base_url, api_key, session=self.session, control_token=self._control_token)

    def change_settings(self, **settings: Any) -> answers.Project:
        """Change settings; an invalid setting prevents all changes (CTL-01)."""
        return self.patch_project(settings)

    # Scenarios and actions

    def scenario(self, scenario: ScenarioChoice) -> answers.Scenario:
        """Switch to a scenario: a name, a file, or a whole document (CTL-19).

        A file is a ``Path``, or a string that ends in ``.yaml``, ``.yml`` or ``.json``. A document may
        contain effect objects, like the arguments of ``faults``.
        """
        if isinstance(scenario, Path) or (isinstance(scenario, str) and scenario.endswith(SCENARIO_SUFFIXES)):
            try:
                return self.scenario_text(Path(scenario).read_bytes())
            except SandboxError as refused:
                raise refused.in_file(str(scenario)) from None
            except OSError as error:
                reason = str(error.strerror).lower()
                raise type(error)(f"scenario file {scenario} cannot be read: {reason}") from None
        if not isinstance(scenario, str | Mapping):
            raise TypeError(f"a scenario is a name, a file or a document, not {scenario!r}")
        body = {"name": scenario} if isinstance(scenario, str) else wrap_effects(scenario)
        return self.put_scenario(body)

    def faults(
        self,
        faults: Sequence[Mapping[str, Any] | Fault | RequestEffect] = (),
        webhooks: Sequence[Mapping[str, Any] | WebhookEffect] = (),
    ) -> answers.Faults:
        """Set the faults for requests and webhooks; without arguments, clear them (CTL-23, CTL-24).

        A rule is a mapping, as in a scenario, whose ``then`` may be an effect: ``{"then": Duplicate(2)}``. A
        bare effect, such as ``Duplicate(2)``, applies to every request or webhook.
        """
        document = wrap_effects({"faults": faults, "webhooks": webhooks})
        return self.put_faults(document)

    def play(
        self, order_id: str, actor: Actor = "customer", action: ActionName = "pay", **details: Any
    ) -> answers.Order:
        """Run the scenario's next action on an order; if none is scheduled, perform the given action.

        The clock advances to the time of the scheduled action.
        """
        scheduled = [
            due for due in self.agenda() if due["order_id"] == order_id and due["kind"] == SCHEDULED_ACTION
        ]
        if not scheduled:
            return self.act(order_id, actor, action, **details)
        self.clock.advance(to=scheduled[0]["at"])
        return self.overview(order_id)["order"]

    # State and history

    def order(self, order_id: str) -> answers.Order:
        """Return an order as shown to the merchant.

        The call is marked as the test's own, so that the journal omits it and no fault applies.
        """
        return self.call("GET", path_of("/v1/orders/{}/", order_id), headers=TEST_CALLER_HEADER)

    def status(self, order_id: str) -> str | None:
        """Return an order's status without a journal entry; None if the order no longer exists."""
        try:
            answer = self.wait(order_id=order_id, status="new", timeout_seconds=0)
        except SandboxError as refused:
            if refused.status not in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.NOT_FOUND):
                raise
            return refused.now.get("status")
        return answer["status"]

    def happened(self, order_id: str | None = None) -> answers.Journal:
        """Return the requests, status changes, failed events, and customers' returns to the shop."""
        return self.call("GET", "/control/journal/", query={"order_id": order_id})

    def scenario_text(self, text: bytes) -> answers.Scenario:
        """Switch to a scenario in YAML (CTL-19); violations include line and column."""
        return self.call("PUT", "/control/scenario/", text)

    def events(self) -> "Generator[Event, None, None]":
        """Stream the project's events from now on until the iterator is closed (CTL-27).

        The iterator waits for events in real time, on a connection of its own.
        """
        url = f"{self.base_url}/control/events/"
        answer = self.session.get(url, auth=(self.api_key, ""), timeout=TIMEOUT_SECONDS, stream=True)
        raise_refusal(answer)  # the server is streaming once it has sent its headers
        return stream_events(answer)

    def rules(self) -> list[answers.Rule]:
        """List every rule that the sandbox follows, with the tests that prove it (SET-70)."""
        return self.fidelity()["items"]

    def assumptions(self) -> list[answers.Assumption]:
        """List the assumptions made where the specification is silent, with reasons (SET-70)."""
        return self.fidelity()["assumptions"]
