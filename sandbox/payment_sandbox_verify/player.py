"""Plays scenes on a service, and observes everything that comes back."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.serving.realtime import monotonic_seconds, wall_now
from payment_sandbox.web.merchant.explanation import EXPLAIN_HEADER
from payment_sandbox.web.merchant.reading import IGNORED_HEADER
from payment_sandbox_verify.answer import (
    MISSING,
    NO_ANSWER,
    UNAUTHORIZED,
    CannotTell,
    NotAnswered,
    ServiceAnswer,
    media_type_of,
)
from payment_sandbox_verify.inbox import Inbox, Received
from payment_sandbox_verify.normalising import Gap, Named, Names
from payment_sandbox_verify.samples import INVOICE, WEBHOOK_URL
from payment_sandbox_verify.service import Service
from payment_sandbox_verify.steps import (
    REFERENCE,
    AnswerWebhooks,
    ApiCall,
    ConversationScene,
    ConversationStep,
    Customer,
    Pause,
    Webhooks,
)

if TYPE_CHECKING:
    from payment_sandbox.client.client import SandboxClient

RULE_ID: Final = re.compile(r"(?:^|; )([A-Z]{2,5}-\d\d)\b")
SKIPPED_IN_LIVE_MODE: Final = "would create invoices or move money, so live mode skips it"
NEEDS_PATIENCE: Final = "needs half an hour: try --patient, with --webhook-url"
NEEDS_INBOX: Final = "needs a URL for the service's webhooks: try --webhook-url"
WEBHOOK_SECONDS: Final = 10.0
LATE_SECONDS: Final = 1.0
SLOW_WEBHOOKS_MAX: Final = 3  # after as many waits without result, later waits are short
TICK_SECONDS: Final = 5.0
WEBHOOK_NAME: Final = "webhook"
PERIOD_SECONDS: Final = 5.0  # pauses above wait for a short period to pass
STEP_SECONDS_MAX: Final = 1.0
TOO_SLOW: Final = (
    "the service took more than a second for a call, so a short period may have passed too early"
)
PAGE_ADDRESSES: Final = ("transactions[-1].payment_url", "order_url", "qr_url")  # the first one counts
NO_PAGE: Final = "the order has no payment page URL"
BANKS: Final = "banks"  # the answer with the list of banks, which belongs to no order


class Observation(NamedTuple):
    """What came back in one step; ``problem`` is the reason why the step could not be played.

    ``orders`` names the saved answers and headers to which the step refers. ``rules`` are those that the
    sandbox names for a refusal.
    """

    orders: frozenset[str] = frozenset()
    problem: str = ""
    shown: dict[str, Any] = {}
    rules: tuple[str, ...] = ()
    answer: ServiceAnswer = NO_ANSWER


class Played(NamedTuple):
    """A scene as a service played it; ``seconds`` is the real time that it took.

    ``webhooks`` returns the webhooks of the scene that have arrived until now.
    """

    scene: ConversationScene
    observations: Sequence[Observation]
    seconds: float
    webhooks: Callable[[], list[dict[str, Any]]] = list


class Player:
    """Plays scenes on one service."""

    def __init__(self, service: Service, inbox: Inbox | None = None) -> None:
        self.service = service
        self.inbox = inbox
        self.is_patient = False
        self._noted: tuple[datetime, float] | None = None
        self._slow_count = 0
        self._scene_count = 0

    def play(self, scene: ConversationScene, beside: Played | None = None) -> Played:
        """Play a scene; ``beside`` is the play of the sandbox, which tells how many webhooks to wait for."""
        self._scene_count += 1
        if scene.is_patient and not self.is_patient:
            return Played(scene, [Observation(problem=NEEDS_PATIENCE)] * len(scene.steps), 0.0)
        started, retried = monotonic_seconds(), self.service.retry_seconds
        performance = _Performance(self, scene, self._scene_count)
        observations = [
            performance.play(number, step, beside.observations[number] if beside is not None else None)
            for number, step in enumerate(scene.steps)
        ]
        seconds = monotonic_seconds() - started + self.service.retry_seconds - retried
        if performance.is_too_slow:
            observations = [Observation(problem=TOO_SLOW)] * len(scene.steps)
        return Played(scene, observations, seconds, performance.arrived_webhooks)

    def with_late_webhooks(self, played: Played) -> Played:
        """Return a play with the webhooks that arrived since its last step."""
        steps = [number for number, step in enumerate(played.scene.steps) if isinstance(step, Webhooks)]
        is_last = steps[-1:] == [len(played.scene.steps) - 1]  # no later step causes more
        if not is_last or played.observations[steps[-1]].problem:
            return played
        last, arrived = played.observations[steps[-1]], played.webhooks()
        known = last.shown.get("webhooks", [])
        shown = {**last.shown, "webhooks": [*known, *arrived[len(known) :]]}
        return played._replace(observations=[*played.observations[: steps[-1]], last._replace(shown=shown)])

    def note_time(self, created: datetime) -> None:
        """Learn the service's time from a new order."""
        self._noted = created, monotonic_seconds()

    def now(self) -> datetime:
        """Return the service's time, estimated from the last new order."""
        if self._noted is None:
            return wall_now()
        created, noted_seconds = self._noted
        return created + timedelta(seconds=monotonic_seconds() - noted_seconds)

    def received(self, matches: Callable[[Received], bool], count: int) -> list[Received]:
        """Return the webhooks that match, once as many as expected have arrived or the time is over."""
        assert self.inbox is not None, "the step was checked before"
        seconds = LATE_SECONDS if self._slow_count >= SLOW_WEBHOOKS_MAX else WEBHOOK_SECONDS
        received = self.inbox.wait_for(matches, count, seconds)
        self._slow_count += len(received) < count
        return received

    def expected_webhooks(self, order_ids: Sequence[str], beside: Observation | None) -> int:
        """Return the number of webhooks to wait for: as many as the sandbox beside the service sent."""
        return len(beside.shown.get("webhooks", ())) if beside is not None else 0


class SandboxPlayer(Player):
    """Plays scenes on a sandbox with a frozen clock, which knows its time and its webhooks."""

    def __init__(self, service: Service, control: "SandboxClient", inbox: Inbox | None = None) -> None:
        super().__init__(service, inbox)
        self.control = control

    def now(self) -> datetime:
        """Return the sandbox's time."""
        return self.control.clock.now

    def expected_webhooks(self, order_ids: Sequence[str], beside: Observation | None) -> int:
        """Return the number of webhooks that the orders have caused."""
        return sum(len(self.control.webhooks(order_id=each)) for each in order_ids)


class _Performance:
    """One scene on one service: saved answers, and names of identifiers."""

    def __init__(self, player: Player, scene: ConversationScene, number: int) -> None:
        self._player = player
        self._service = player.service
        self._scene = scene
        self._saved: dict[str, ServiceAnswer] = {}
        self._order_ids: dict[str, None] = {}
        self._used: set[str] = set()
        self._webhook_url = f"{WEBHOOK_URL}?scene={number}"
        if player.inbox is not None:
            url = player.inbox.url
            self._webhook_url = f"{url}{'&' if '?' in url else '?'}scene={number}"
        self._names = Names(player.now(), {self._webhook_url: WEBHOOK_NAME})
        self._unanswered = ""
        self._slowest_seconds = 0.0

    @property
    def is_too_slow(self) -> bool:
        """Whether a step took so long that a short period may have passed in between."""
        if isinstance(self._player, SandboxPlayer):
            return False  # its clock only advances in pauses
        has_period = any(
            isinstance(step, Pause) and step.seconds > PERIOD_SECONDS for step in self._scene.steps
        )
        return has_period and self._slowest_seconds > STEP_SECONDS_MAX

    def is_own_webhook(self, received: Received) -> bool:
        """Whether a webhook belongs to an order of this scene; one that names no order belongs here, too."""
        if urlsplit(received.path).query != urlsplit(self._webhook_url).query:
            return False
        order_id = received.data.get("order_id") if isinstance(received.data, dict) else None
        return not isinstance(order_id, str) or order_id in self._order_ids

    def arrived_webhooks(self) -> list[dict[str, Any]]:
        """Return the webhooks of this scene that have arrived until now."""
        inbox = self._player.inbox
        received = inbox.wait_for(self.is_own_webhook, 0, 0.0) if inbox is not None else []
        return [self._webhook(each) for each in received]

    def play(self, number: int, step: ConversationStep, beside: Observation | None) -> Observation:
        """Play one step."""
        self._used = set()
        if self._unanswered:
            return Observation(problem=self._unanswered)
        self._names.step = f"step {number + 1}"
        started, retried = monotonic_seconds(), self._service.retry_seconds
        try:
            observation = self._play(step, beside)
        except CannotTell as error:
            observation = Observation(problem=str(error))
            self._unanswered = str(error) if isinstance(error, NotAnswered) else ""
        if isinstance(step, ApiCall | Customer):
            seconds = monotonic_seconds() - started + self._service.retry_seconds - retried
            self._slowest_seconds = max(self._slowest_seconds, seconds)
        return observation._replace(orders=frozenset(self._used - {BANKS}))

    def _play(self, step: ConversationStep, beside: Observation | None) -> Observation:
        match step:
            case ApiCall():
                return self._call(step)
            case Customer():
                return Observation(shown=self._act(step))
            case Webhooks():
                return Observation(shown=self._webhooks(step, beside))
            case Pause():
                self._service.pause(step.seconds)
            case AnswerWebhooks():
                if self._player.inbox is None:
                    raise CannotTell(NEEDS_INBOX)
                self._player.inbox.answer_with(*step.statuses, delay=step.delay_seconds)
        return Observation()

    # Calls

    def _call(self, step: ApiCall) -> Observation:
        path, body = str(self._resolve(step.path)), self._resolve(step.body)
        if self._service.is_live and INVOICE in repr(body) and step.method == "POST":
            raise NotAnswered(SKIPPED_IN_LIVE_MODE)
        headers = {name: str(self._resolve(value)) for name, value in step.headers.items()}
        content = step.content
        if content is not None:
            content = str(self._resolve(content.decode("latin-1"))).encode("latin-1")
        answer = self._service.call(step.method, path, body, headers=headers, auth=step.auth, content=content)
        if answer.is_repeated and not answer.is_success and step.method != "GET":
            raise CannotTell(f"{step.method} {path} was repeated after a lost answer")
        self._remember(step, answer)
        return observe(answer, self._names)

    def _remember(self, step: ApiCall, answer: ServiceAnswer) -> None:
        """Save an answer for later steps, and learn the service's time from the first order of a scene."""
        if step.saves and answer.is_success:
            self._saved[step.saves] = answer
        if answer.is_success and isinstance(answer.at("id"), str):
            self._order_ids[answer.at("id")] = None
        created = _created(answer)
        if created is not None:
            self._player.note_time(created)
            if not self._order_ids.keys() - {answer.at("id")}:
                self._names.start = created

    def _resolve(self, value: Any) -> Any:
        """Replace references to earlier answers.

        Raises:
            CannotTell: no answer has such a value.
        """
        if isinstance(value, dict):
            return {key: self._resolve(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._resolve(item) for item in value]
        if not isinstance(value, str) or "<<" not in value:
            return value
        whole = REFERENCE.fullmatch(value)
        if whole is not None:
            return self._referred(whole)
        return REFERENCE.sub(lambda match: str(self._referred(match)), value)

    def _referred(self, match: re.Match[str]) -> Any:
        name, kind, path = match.groups()
        if name == WEBHOOK_NAME:
            return self._webhook_url
        self._used |= {name, f"{name}{kind}{path}"} if kind == "@" else {name}
        answer = self._saved.get(name)
        if answer is None:
            raise CannotTell(f"an earlier step has no answer for {name!r}")
        value = answer.headers.get(path, MISSING) if kind == "@" else answer.at(path)
        if value is MISSING:
            raise CannotTell(f"the answer for {name!r} has no {path}")
        return value

    # Customers and webhooks

    def _act(self, step: Customer) -> dict[str, Any]:
        order = self._saved.get(step.order)
        self._used.add(step.order)
        if order is None:
            raise CannotTell(f"an earlier step has no answer for {step.order!r}")
        url, payer = self._page_url(order), self._service.payer
        if step.action == "visit":
            return {"opens": payer.visit(url).status < REFUSED_STATUS}
        if step.action == "look":
            page = payer.visit(url)
            names = self._service.ours
            methods = sorted({names.get(each, each) for each in page.buttons} & set(METHOD_NAMES))
            return {"language": page.language.partition("-")[0], "methods": methods}
        if self._service.is_live and step.action == "pay":
            raise NotAnswered(SKIPPED_IN_LIVE_MODE)
        amount = order.at("amount")
        shown_amount = f"{amount / 100:.2f} EUR" if isinstance(amount, int) else "the amount"
        choice = self._service.names.get(step.choice, step.choice)
        returned = payer.act(url, step.action, choice, shown_amount)
        return {"returned to": self._return(returned)}

    def _page_url(self, order: ServiceAnswer) -> str:
        addresses = map(order.at, PAGE_ADDRESSES)
        address = next((each for each in addresses if isinstance(each, str)), None)
        if address is None:
            raise CannotTell(NO_PAGE)
        return self._service.absolute_url(address)

    def _return(self, url: str | None) -> Any:
        """Return the address to which the customer returned, with names for identifiers."""
        if url is None:
            return Named("a page of the service")
        parts = urlsplit(url)
        query = {name: self._names.normalise(value, name) for name, value in parse_qsl(parts.query)}
        return {"address": f"{parts.scheme}://{parts.netloc}{parts.path}", "query": query}

    def _webhooks(self, step: Webhooks, beside: Observation | None) -> dict[str, Any]:
        if self._player.inbox is None:
            raise CannotTell(NEEDS_INBOX)
        self._used.update(self._saved)
        if step.seconds:
            return {"webhooks": list(self._watch(step.seconds))}
        expected = self._player.expected_webhooks(list(self._order_ids), beside)
        received = self._player.received(self.is_own_webhook, expected)
        others = len(self._player.inbox.wait_for(self._is_for_others, 0, 0.0)) - len(received)
        note = f", and {others} for other orders" if others > 0 else ""
        return {"webhooks": [self._webhook(each) for each in received], "others": note}

    def _is_for_others(self, received: Received) -> bool:
        return urlsplit(received.path).query == urlsplit(self._webhook_url).query

    def _watch(self, seconds: float) -> Iterator[dict[str, Any]]:
        """Observe retries; each is shown with the time since the one before."""
        count, waited, last = 0, 0.0, 0.0
        assert self._player.inbox is not None, "the caller checked it"
        while waited <= seconds:
            received = self._player.inbox.wait_for(
                self.is_own_webhook, count + 1, LATE_SECONDS if not waited else 0.0
            )
            for each in received[count:]:
                yield {**self._webhook(each), "after": Gap(waited - last if count else 0.0)}
                count, last = count + 1, waited
            self._service.pause(TICK_SECONDS)
            waited += TICK_SECONDS

    def _webhook(self, received: Received) -> dict[str, Any]:
        return {
            "method": received.method,
            "media type": received.media_type,
            "authorization": received.has_authorization,
            "body": self._names.normalise(received.data),
        }


def observe(answer: ServiceAnswer, names: Names) -> Observation:
    """Return the compared parts of an answer, without what is the service's own."""
    shown: dict[str, Any] = {}
    if answer.content:
        shown["media type"] = media_type_of(answer.headers.get("Content-Type", ""))
    if answer.headers.get("ETag") is not None:
        etag = answer.headers["ETag"]
        shown["etag"] = names.name(etag, "ETag" if STRONG_ETAG.fullmatch(etag) else "weak ETag")
    if answer.status == UNAUTHORIZED:
        shown["WWW-Authenticate"] = answer.headers.get("WWW-Authenticate", "").partition(" ")[0].lower()
    if answer.headers.get(IGNORED_HEADER):
        shown["ignored"] = sorted(answer.headers[IGNORED_HEADER].split(", "))
    if answer.is_success:
        shown["body"] = names.normalise(_without_other_banks(answer))
    else:
        shown["violations"] = _violations(answer)
        shown["error"] = _shape_of_error(answer)
    explained = answer.headers.get(EXPLAIN_HEADER, "").partition("; possible now")[0]
    return Observation(shown=shown, rules=tuple(RULE_ID.findall(explained)), answer=answer)


STRONG_ETAG: Final = re.compile(r'"[^"]*"')
REFUSED_STATUS: Final = 400


def _created(answer: ServiceAnswer) -> datetime | None:
    """Return the time at which the order in an answer was created."""
    try:
        created = datetime.fromisoformat(answer.at("created"))
    except (TypeError, ValueError):
        return None
    return created if created.tzinfo is not None else created.replace(tzinfo=UTC)


def _shape_of_error(answer: ServiceAnswer) -> str:
    """Describe the form of a refusal."""
    error, value = answer.at("error"), answer.at("error.value")
    if not isinstance(error, dict):
        return media_type_of(answer.headers.get("Content-Type", "")) if answer.content else "no body"
    status = "its status" if error.get("status") == answer.status else f"the status {error.get('status')!r}"
    return f"an error report with {status} and {'a text' if isinstance(value, str) else 'no text'}"


def _violations(answer: ServiceAnswer) -> list[Any]:
    """Return the paths of the violations, and their allowed values except banks, which are the service's."""
    violations = [each for each in answer.list_at("error.violations") if isinstance(each, dict)]
    return sorted(
        (
            {
                "path": str(each.get("path")),
                "allowed": None
                if not isinstance(each.get("allowed"), list) or "issuer_id" in str(each.get("path"))
                else sorted(set(map(str, each["allowed"]))),
            }
            for each in violations
        ),
        key=str,
    )


def _without_other_banks(answer: ServiceAnswer) -> Any:
    """Return the body; of the banks, whose number is the service's own, only the first and the last."""
    if not answer.path.rstrip("/").endswith("/issuers") or not isinstance(answer.data, list):
        return answer.data
    return answer.data if len(answer.data) < 2 else [answer.data[0], answer.data[-1]]
