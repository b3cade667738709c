"""A verification: plays the conversation on a service and on a sandbox, and compares."""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from enum import Enum
from itertools import chain
from typing import Any, Final, NamedTuple, cast

import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.fidelity.ledger import rules
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import build
from payment_sandbox.serving.sessions import direct_session
from payment_sandbox_verify.answer import UNAUTHORIZED, CannotTell, NotVerified
from payment_sandbox_verify.cleaning import clean_up
from payment_sandbox_verify.comparing import Compared, compare_scene
from payment_sandbox_verify.conversation import all_scenes
from payment_sandbox_verify.differences import AnswerDifference, by_rule, describe
from payment_sandbox_verify.inbox import Inbox
from payment_sandbox_verify.player import Played, Player, SandboxPlayer
from payment_sandbox_verify.rules import unchecked_rules
from payment_sandbox_verify.samples import CARD, sale, transaction_with
from payment_sandbox_verify.service import Service
from payment_sandbox_verify.steps import ORDERS_PATH, ConversationScene

Progress = Callable[[int, int], None]
"""A callback that receives the number of played scenes and the total."""

TEST_FLAG: Final = "is-test"
REQUIRED_FIELDS: Final = ("id", "status")
REFERENCE_KEY: Final = "sandbox-key"
WRONG_SERVER: Final = "--url must be the base address of a server with this API, without /v1/"
REASONS_MAX: Final = 3  # differences reported per rule
NOT_COVERED: Final = "no step of the conversation shows this rule"


class Verdict(Enum):
    """The result for a rule."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNKNOWN = "could not tell"


class RuleReport(NamedTuple):
    """The verdict on a rule and its reasons; ``hidden_by`` is the rule that hides this one, if any."""

    rule: str
    verdict: Verdict
    reasons: Sequence[str] = ()
    hidden_by: str = ""

    @property
    def reason(self) -> str:
        """The reasons as one text."""
        return "; ".join(self.reasons)


class VerificationResult(NamedTuple):
    """The verdict on every rule in the ledger, all differences, and the plays of both servers by scene."""

    reports: Mapping[str, RuleReport]
    differences: Sequence[AnswerDifference]
    pairs: Sequence[tuple[Played, Played]] = ()
    remaining: Mapping[str, str] = {}
    """The remaining amounts or problems of orders, by order id."""
    code_count: int = 0
    """The number of created QR requests."""
    call_count: int = 0

    def count(self, verdict: Verdict) -> int:
        """Return the number of rules with a verdict."""
        return sum(each.verdict is verdict for each in self.reports.values())


def is_live(service: Service) -> bool | None:
    """Whether the service takes real money, judging by unpaid orders, which are then cancelled.

    The first order is hosted; if its flags lack ``is-test``, a card order decides. The result is None if
    the order has no list of flags.

    Raises:
        NotVerified: the service does not answer, or its answer is not an order.
    """
    try:
        order = service.call("POST", ORDERS_PATH, sale())
    except CannotTell as error:
        raise NotVerified(str(error)) from None
    called = f"POST {service.url}{ORDERS_PATH} returned {order.summary}"
    if order.status == UNAUTHORIZED:
        raise NotVerified(f"{called}: the server refuses the key; --key must be that of a test account")
    if not order.is_success:
        raise NotVerified(f"{called}, expected 201 with an order: {WRONG_SERVER}")
    if not all(isinstance(order.at(name), str) for name in REQUIRED_FIELDS):
        expected = f"an order with {' and '.join(REQUIRED_FIELDS)}"
        raise NotVerified(
            f"{called} without JSON, expected {expected}: {WRONG_SERVER}"
            if order.data is None
            else f"{called} with {describe(order.data)}, expected {expected}: {WRONG_SERVER}"
        )
    flags = order.at("flags")
    if isinstance(flags, list) and TEST_FLAG not in flags:
        with suppress(CannotTell):
            flags = [
                *flags,
                *service.call("POST", ORDERS_PATH, sale(transaction_with(CARD))).list_at("flags"),
            ]
    clean_up(service)
    return TEST_FLAG not in flags if isinstance(flags, list) else None


def verify(
    player: Player,
    settings: Mapping[str, Any],
    *,
    live: bool,
    progress: Progress | None = None,
    scenes: Sequence[ConversationScene] | None = None,
) -> VerificationResult:
    """Play the conversation on a service and on a sandbox with these settings, and compare.

    Raises:
        NotVerified: the service has stopped responding.
    """
    service = player.service
    service.is_live = live
    played = all_scenes() if scenes is None else scenes
    pairs: list[tuple[Played, Played]] = []
    try:
        with reference_sandbox(settings) as reference:
            reference.is_patient = player.is_patient
            reference.service.is_live = live
            for number, scene in enumerate(played):
                if progress is not None:
                    progress(number, len(played))
                ours = reference.play(scene)
                pairs.append((player.play(scene, ours), ours))
    except NotVerified as error:
        remaining = ", ".join(clean_up(service))
        note = f"; these orders remain on the server: {remaining}" if remaining else ""
        raise NotVerified(f"{error}{note}") from None
    except BaseException:
        clean_up(service)
        raise
    pairs = [(player.with_late_webhooks(theirs), ours) for theirs, ours in pairs]
    unfinished = clean_up(service)
    result = summarize(compare_scene(theirs, ours) for theirs, ours in pairs)
    return result._replace(
        pairs=pairs, remaining=unfinished, code_count=service.code_count, call_count=service.call_count
    )


def summarize(compared: Iterable[Compared]) -> VerificationResult:
    """Sum up comparisons by rule."""
    scenes = list(compared)
    differences = list(chain.from_iterable(scene.differences for scene in scenes))
    differing = differing_rules(differences)
    agreed = {rule: RuleReport(rule, Verdict.AGREES) for scene in scenes for rule in scene.agreed}
    hidden = ChainMap(*(scene.hidden for scene in scenes))  # the first reason counts
    known = [rule["id"] for rule in rules()]
    unchecked = {**dict.fromkeys(known, NOT_COVERED), **dict(unchecked_rules(known))}
    reports = {
        **{rule: RuleReport(rule, Verdict.UNKNOWN, [unchecked[rule]]) for rule in known},
        **{rule: RuleReport(rule, Verdict.UNKNOWN, [why], by) for rule, (why, by) in hidden.items()},
        **agreed,
        **{each.rule: each for each in differing},
    }
    ordered = [*(report.rule for report in differing), *known]  # the first step that differs shows the cause
    return VerificationResult({rule: reports[rule] for rule in ordered}, differences)


def differing_rules(differences: Iterable[AnswerDifference]) -> list[RuleReport]:
    """Return the report of each rule that has a difference, in the order of the conversation."""
    grouped = by_rule(differences)
    return [RuleReport(rule, Verdict.DIFFERS, _reasons(reasons)) for rule, reasons in grouped.items()]


def _reasons(differences: Sequence[AnswerDifference]) -> list[str]:
    reasons = list(dict.fromkeys(each.reason for each in differences))
    more = [f"and {len(reasons) - REASONS_MAX} more"] if len(reasons) > REASONS_MAX else []
    return [*reasons[:REASONS_MAX], *more]


@contextmanager
def reference_server() -> Iterator[SandboxClient]:
    """Run a sandbox server for the duration of a ``with`` block."""
    with build(ServerConfig()) as server, direct_session() as session:
        yield SandboxClient(server.url, REFERENCE_KEY, session=session)


@contextmanager
def reference_project(server: SandboxClient, settings: Mapping[str, Any]) -> Iterator[SandboxPlayer]:
    """Create a project on a reference server; its webhooks are received until the ``with`` block ends.

    Pauses advance its clock.

    Raises:
        SandboxError: the ``settings`` are invalid.
    """
    with closing(Inbox()) as inbox:
        client = server.create_project(**{"clock": "frozen", **settings})
        session = cast("requests.Session", client.session)
        pause = lambda seconds: client.clock.advance(timedelta(seconds=seconds))  # noqa: E731
        yield SandboxPlayer(Service(client.base_url, client.api_key, session, pause=pause), client, inbox)


@contextmanager
def reference_sandbox(settings: Mapping[str, Any] | None = None) -> Iterator[SandboxPlayer]:
    """Run a sandbox server with a new project for the duration of a ``with`` block.

    Raises:
        SandboxError: the ``settings`` are invalid.
    """
    with reference_server() as server, reference_project(server, settings or {}) as reference:
        yield reference
