"""A verification: runs the same probes against a service and against the sandbox."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from payment_sandbox.client.receiver import WebhookReceiver
from payment_sandbox.fidelity.ledger import Rule, rules
from payment_sandbox.loading import LOADING
from payment_sandbox.serving.sessions import direct_session
from payment_sandbox_verify.answer import ServiceAnswer
from payment_sandbox_verify.checks import CannotTell, Check, NotVerified
from payment_sandbox_verify.fields import compare_fields
from payment_sandbox_verify.payers import FormPayer, ManualPayer
from payment_sandbox_verify.probes import all_probes
from payment_sandbox_verify.probing import PARSING_ERRORS, Progress, RuleReport, Verdict, run_probes, sum_up
from payment_sandbox_verify.samples import CARD, transaction_with
from payment_sandbox_verify.service import UNLIMITED, MethodNames, Pace, Service
from payment_sandbox_verify.shapes import check_all_shapes

if TYPE_CHECKING:
    import requests

    from payment_sandbox.client.client import SandboxClient

CONTROL_API_ONLY: Final = "the rule concerns the sandbox's control API, not the service"
REASONS_UNCHECKED: Final[Mapping[str, str]] = {
    "needs a shop that is down, or the shop's address in the project's settings": "HOOK-03 SET-56 SET-59",
    "needs a bank transfer that arrives, or fails to arrive": "HOOK-13 SEPA-02 SEPA-04 SET-62",
    "needs a customer whom the screening declines or defers": (
        "ERR-01 ERR-02 ORD-25 STA-13 STA-14 STA-15 STA-16"
    ),
    "needs a person to scan a code": "FLOW-03 ORD-26 ORD-27 QR-13 QR-17 QR-27 WQR-01",
    "needs a wallet with real cards": "GPAY-02 GPAY-03 GPAY-04 GPAY-05",
    "needs a card of each kind, typed by a person": "CARD-02 CARD-08 GEN-02 SET-18 SET-28",
    "needs an account with different permissions": "CARD-09 FLOW-10 FLOW-11 SET-13",
    "needs a different sandbox setting": "SET-23 SET-39 SET-60 SET-63",
    "needs days or years to pass": "LIM-08 LIM-09 SET-22 SET-45 SET-69",
    "needs a service that supports the header": "SET-71",
    "concerns the sandbox's ledger": "SET-70",
}
CONTROL_PREFIXES: Final = ("CTL-", "SCN-")


def uncovered_rules(rules: list[Rule]) -> Iterator[tuple[str, str]]:
    """Yield the ids of the rules that no probe covers, each with the reason."""
    reasons = {rule: reason for reason, rule_ids in REASONS_UNCHECKED.items() for rule in rule_ids.split()}
    for rule in rules:
        if rule["id"].startswith(CONTROL_PREFIXES):
            yield rule["id"], CONTROL_API_ONLY
        elif rule["id"] in reasons:
            yield rule["id"], reasons[rule["id"]]


TEST_FLAG: Final = "is-test"
REQUIRED_FIELDS: Final = ("id", "status")
UNAUTHORIZED: Final = 401
REFERENCE_KEY: Final = "sandbox-key"


class VerificationResult(NamedTuple):
    """The verdict on every rule in the ledger, the remaining orders, all answers, and the refusals."""

    reports: Mapping[str, RuleReport]
    remaining: Mapping[str, str]
    """The remaining amounts or problems of orders, by order id."""
    answers: list[ServiceAnswer]
    refusals: list[ServiceAnswer]
    code_count: int = 0
    """The number of created QR requests."""

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
        order = service.create()
    except CannotTell as error:
        raise NotVerified(str(error)) from None
    if order.status == UNAUTHORIZED:
        raise NotVerified(f"{service.url} refuses the key: {order.summary}: {order.at('error.value')}")
    if not order.is_success:
        raise NotVerified(
            f"POST /v1/orders/ returned {order.summary}, so this server may not implement this API"
        )
    if not all(isinstance(order.at(name), str) for name in REQUIRED_FIELDS):
        raise NotVerified(
            f"POST /v1/orders/ returned {order.summary}, but no order with {' and '.join(REQUIRED_FIELDS)}:"
            " this server may not implement this API"
        )
    flags = order.at("flags")
    if isinstance(flags, list) and TEST_FLAG not in flags:
        with suppress(CannotTell):
            flags = [*flags, *service.create(transaction_with(CARD)).list_at("flags")]
    service.clean_up()
    return TEST_FLAG not in flags if isinstance(flags, list) else None


@cache
def verify_default_sandbox(*, live: bool = False) -> VerificationResult:
    """Verify the sandbox with default settings, in test or live mode; cache the result."""
    with reference_sandbox({"mode": "live" if live else "test"}) as own:
        return verify(own.service, live=live)


def verify(
    service: Service,
    *,
    live: bool,
    progress: Progress | None = None,
    sandbox_answers: Sequence[ServiceAnswer] = (),
) -> VerificationResult:
    """Check every rule; ``sandbox_answers`` have the fields that the service should have."""
    service.answers.clear()
    try:
        results: list[Check | RuleReport] = list(
            run_probes(list(all_probes()), service, is_live=live, progress=progress)
        )
        answers = list(service.answers)
    except NotVerified as error:
        raise NotVerified(f"{error}{_describe_remaining(service.clean_up())}") from None
    except BaseException:
        service.clean_up()
        raise
    remaining = service.clean_up()
    with suppress(*PARSING_ERRORS):
        checks = [each for each in results if isinstance(each, Check)]
        wrongly_accepted = {
            id(each.refusal) for each in checks if not each.is_met
        }  # an accepted request that should be refused proves nothing about records
        others = [each for each in answers if id(each) not in wrongly_accepted]
        checks += check_all_shapes(others)
        results = [*checks, *compare_fields(others, sandbox_answers, checks), *results]
    return summarize(results, answers, remaining)._replace(code_count=service.code_count)


def _describe_remaining(orders: Mapping[str, str]) -> str:
    return f"; these orders remain on the server: {', '.join(orders)}" if orders else ""


def summarize(
    checks: Sequence[Check | RuleReport],
    answers: list[ServiceAnswer],
    remaining: Mapping[str, str],
    reason_unchecked: str | None = None,
) -> VerificationResult:
    """Sum up checks; ``reason_unchecked`` explains why the other rules have no check."""
    verdicts = sum_up(checks)
    known = rules()
    for rule, reason in uncovered_rules(known):
        verdicts.setdefault(rule, RuleReport(rule, Verdict.UNKNOWN, reason))
    if reason_unchecked is not None:
        for each in known:
            verdicts.setdefault(each["id"], RuleReport(each["id"], Verdict.UNKNOWN, reason_unchecked))
    refusals = [each.refusal for each in checks if isinstance(each, Check) and each.refusal is not None]
    return VerificationResult(_sort_by_rule(verdicts, known), remaining, answers, refusals)


def _sort_by_rule(verdicts: Mapping[str, RuleReport], known: list[Rule]) -> dict[str, RuleReport]:
    return {rule["id"]: verdicts[rule["id"]] for rule in known if rule["id"] in verdicts}


class ReferenceSandbox(NamedTuple):
    """A sandbox with which services are compared, and the client that advances its clock."""

    service: Service
    client: "SandboxClient"


@contextmanager
def reference_sandbox(settings: Mapping[str, Any] | None = None) -> Iterator[ReferenceSandbox]:
    """Run a sandbox server with a new project for the duration of a ``with`` block.

    Raises:
        SandboxError: the ``settings`` are invalid.
    """
    with LOADING:
        from payment_sandbox.client.client import SandboxClient
        from payment_sandbox.serving.config import ServerConfig
        from payment_sandbox.serving.server import build

    with build(ServerConfig()) as server, direct_session() as session:
        first = SandboxClient(server.url, REFERENCE_KEY, session=session)
        client = first.create_project(**(settings or {}))
        receiver = WebhookReceiver()
        try:
            service = service_at(
                server.url,
                client.api_key,
                session,
                pause=lambda seconds: client.clock.advance(timedelta(seconds=seconds)),
                receiver=receiver,
            )
            yield ReferenceSandbox(service, client)
        finally:
            receiver.close()


def service_at(
    url: str,
    key: str,
    session: "requests.Session",
    *,
    pause: Callable[[float], Any],
    pace: Pace | None = None,
    receiver: WebhookReceiver | None = None,
    ask: Callable[[str], bool] | None = None,
    names: MethodNames | None = None,
) -> Service:
    """Return a service; a program submits its payment pages, but if ``ask`` is given, a person pays."""
    wait = pace or Pace(UNLIMITED)
    forms = FormPayer(session, wait)
    payer = forms if ask is None else ManualPayer(forms, ask)
    return Service(url, key, session, payer, wait, pause, receiver, names)
