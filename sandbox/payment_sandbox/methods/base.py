"""What a payment method is: facts about it, checks of a request, and steps that play it out."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.periods import Period
from payment_sandbox.orders.actions import BANK, CUSTOMER, PROCESSOR, SCREENING, Action
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.orders.statuses import Trigger
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.orders.vault import Credential

PAGE_KEYS: Final = frozenset({"customer", "after", "reason"})
PROCESSOR_KEYS: Final = frozenset({"processor", "after", "reason"})
AT_ONCE: Final = "PT0S"
PAYMENT_PAGE: Final = "{payment_page}"
"""Stands in revealed details for the full address of the attempt's page, which only the web knows."""

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
    """What pages call something, in their languages."""

    english: str
    dutch: str
    german: str
    french: str

    def __getitem__(self, tag: Any) -> Any:
        """The label in the language of a tag such as ``nl``; English where there is none."""
        return {"nl": self.dutch, "de": self.german, "fr": self.french}.get(str(tag)[:2], self.english)


class DetailField(NamedTuple):
    """A field of ``payment_method_details`` that a request can give; ``rule`` is what a wrong one breaks."""

    name: str
    about: str
    rule: str
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    expected: str = ""


class TriggerValue(NamedTuple):
    """A value that makes something happen without a scenario: a customer's address, or an amount."""

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
    bank: Labels | None = None  # what its page calls the customer's bank
    has_issuers: bool = False  # the customer chooses a bank beforehand
    pays_bank_qr: bool = False
    details: tuple[DetailField, ...] = ()
    triggers: tuple[TriggerValue, ...] = ()


class AttemptDraft(NamedTuple):
    """What a request asks of a method; None where the request said nothing usable."""

    path: str
    amount_cents: Cents | None
    details: Mapping[str, Any]
    capture_mode: str | None


class Terms(NamedTuple):
    """What a method may know of the project: its mode, features, vault, clock and identifiers."""

    now: datetime
    is_test: bool
    features: frozenset[str]
    find_credential: Callable[[str], Credential | None]
    ids: Ids


class Move(NamedTuple):
    """Move the attempt, and its order where the order follows."""

    trigger: Trigger
    reason: str | None = None
    customer_message: str | None = None


class Later(NamedTuple):
    """Somebody acts by itself after a while."""

    after: Period
    action: Action


class Reveal(NamedTuple):
    """Details become readable on the transaction."""

    details: Mapping[str, Any]
    brand: str | None = None


class OpenPage:
    """The customer has a page to go to."""


class Credit(NamedTuple):
    """Money arrives on the account."""

    amount_cents: Cents


class StoreCard(NamedTuple):
    """A first payment leaves its card in the vault."""

    use: str
    brand: str
    card: Mapping[str, Any]


Step = Move | Later | Reveal | OpenPage | Credit | StoreCard


class Method(Protocol):
    """One payment method; every function is pure and answers with data."""

    name: str
    capabilities: Capabilities

    def outcome_keys(self, attempt: Transaction) -> frozenset[str]:
        """The words of a scenario's outcome that mean something to this attempt."""
        ...

    def check(self, draft: AttemptDraft, terms: Terms) -> list[Violation]:
        """All that is wrong with a request for this method."""
        ...

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """What the creation of an attempt sets off."""
        ...

    def visit(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """What the customer's arrival on the payment page sets off."""
        ...

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """What somebody's action sets off; only called with one of ``actions``."""
        ...

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """The names of the actions that the attempt's state allows."""
        ...


def succeeded(attempt: Transaction) -> Move:
    """The move of a success: an authorization where a capture mode asks for one, else a sale."""
    return Move(Trigger.AUTHORIZE if attempt.capture_mode else Trigger.PAY)


def planned_after(attempt: Transaction, default: str = AT_ONCE) -> Period:
    """How long the scenario lets the planned actor wait."""
    return Period.parse(attempt.plan.get("after", default))
