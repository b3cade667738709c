"""The interface of a payment method: its facts, its request checks, and its steps."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.times import Period
from payment_sandbox.orders.actions import BANK, CUSTOMER, PROCESSOR, SCREENING, Action
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.orders.statuses import Trigger
from payment_sandbox.orders.transaction import Transaction

PAGE_KEYS: Final = frozenset({"customer", "after", "reason"})
PROCESSOR_KEYS: Final = frozenset({"processor", "after", "reason"})
AT_ONCE: Final = "PT0S"
PAYMENT_PAGE: Final = "{payment_page}"
"""Placeholder in revealed details for the URL of the attempt's page, which only the web layer knows."""

VISIT: Final = f"{CUSTOMER} visit"
PAY: Final = f"{CUSTOMER} pay"
CANCEL: Final = f"{CUSTOMER} cancel"
FAIL: Final = f"{CUSTOMER} fail"
CHOOSE: Final = f"{CUSTOMER} choose"
CREDIT: Final = f"{BANK} credit"
APPROVE: Final = f"{SCREENING} approve"
DECLINE: Final = f"{SCREENING} decline"
ERR: Final = f"{SCREENING} error"
SETTLE: Final = f"{PROCESSOR} settle"
REJECT: Final = f"{PROCESSOR} fail"


class Labels(NamedTuple):
    """A label in each language of the pages."""

    english: str
    dutch: str
    german: str
    french: str
    flemish: str | None = None  # None: as in Dutch

    def __getitem__(self, tag: Any) -> Any:
        """The label in the language of a tag such as ``nl``; English if there is none."""
        if tag == "nl-BE" and self.flemish is not None:
            return self.flemish
        return {"nl": self.dutch, "de": self.german, "fr": self.french}.get(str(tag)[:2], self.english)


class DetailField(NamedTuple):
    """A ``payment_method_details`` field of requests; ``rule`` is the rule that a wrong value breaks."""

    name: str
    about: str
    rule: str
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    expected: str = ""


class TriggerValue(NamedTuple):
    """A value that triggers an outcome without a scenario: a customer's e-mail address, or an amount."""

    then: Mapping[str, Any]
    local_part: str | None = None  # of the customer's e-mail address
    amount: Cents | None = None


class Capabilities(NamedTuple):
    """The facts about a method that do not depend on an order."""

    labels: Labels
    default_expiration: str
    brand: str
    testable: bool = True
    completes_in_test: bool = True
    needs_order_lines: bool = False
    needs_customer: bool = False
    refunds_by_lines: bool = False
    authorizes: bool = False
    default_capture_mode: str | None = None
    needs_feature: str | None = None
    outcomes: tuple[frozenset[str], ...] = (PAGE_KEYS,)
    screenings: tuple[str, ...] = ("passed", "declined", "error", "needs-time")
    page: str = "login"  # which kind of page its customers see
    icon: str = "bank"  # on the list of methods
    hint: Labels | None = None  # under its label there
    bank: Labels | None = None  # the name of the customer's bank on its page
    has_issuers: bool = False  # the customer chooses a bank first
    pays_bank_qr: bool = False
    details: tuple[DetailField, ...] = ()
    always_reveals: tuple[str, ...] = ()  # the details that its page shows, from the beginning
    triggers: tuple[TriggerValue, ...] = ()


class AttemptDraft(NamedTuple):
    """The parts of a request that a method checks; None where the request has no usable value."""

    path: str
    amount_cents: Cents | None
    details: Mapping[str, Any]
    capture_mode: str | None


class Terms(NamedTuple):
    """What a method may use of the project: its mode, features, vault, clock and identifiers."""

    now: datetime
    is_test: bool
    features: frozenset[str]
    find_credential: Callable[[str], Credential | None]
    ids: Ids
    refund_status: str = "completed"  # of a new refund, unless the scenario decides


class Move(NamedTuple):
    """Change the attempt's status, and its order's if the order follows."""

    trigger: Trigger
    reason: str | None = None
    customer_message: str | None = None


class Later(NamedTuple):
    """An actor acts automatically after a delay."""

    after: Period
    action: Action


class Reveal(NamedTuple):
    """Add details to the transaction."""

    details: Mapping[str, Any]
    brand: str | None = None


class OpenPage:
    """The attempt gets a payment page."""


class Credit(NamedTuple):
    """Money arrives in the account."""

    amount_cents: Cents


class StoreCard(NamedTuple):
    """A first payment stores its card in the vault."""

    use: str
    brand: str
    card: Mapping[str, Any]


Step = Move | Later | Reveal | OpenPage | Credit | StoreCard


class Method(Protocol):
    """One payment method; every function is pure and returns data."""

    name: str
    capabilities: Capabilities

    def outcome_keys(self, attempt: Transaction) -> frozenset[str]:
        """The keys of a scenario's outcome that apply to this attempt."""
        ...

    def check(self, draft: AttemptDraft, terms: Terms) -> list[Violation]:
        """Everything that is wrong with a request for this method."""
        ...

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """The steps when an attempt is created."""
        ...

    def visit(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """The steps when the customer opens the payment page."""
        ...

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """The steps after an action; only called with one of ``actions``."""
        ...

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """The names of the actions that are possible in the current state."""
        ...


def succeeded(attempt: Transaction) -> Move:
    """The move on success: an authorization if the attempt has a capture mode, otherwise a sale."""
    return Move(Trigger.AUTHORIZE if attempt.capture_mode else Trigger.PAY)


def planned_after(attempt: Transaction, default: str = AT_ONCE) -> Period:
    """How long the actor waits, as planned by the scenario."""
    return Period.parse(attempt.plan.get("after", default))
