"""The interface of payment methods, and their shared behaviour."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal, NamedTuple

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.kernel.times import Period
from payment_sandbox.orders.actions import BANK, CUSTOMER, PROCESSOR, SCREENING, Action
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.orders.statuses import TransactionStatus, Trigger
from payment_sandbox.orders.transaction import Transaction

PAGE_KEYS: Final = frozenset({"customer", "after", "reason"})
PROCESSOR_KEYS: Final = frozenset({"processor", "after", "reason"})
NO_DELAY: Final = "PT0S"
PAYMENT_PAGE: Final = "{payment_page}"
"""The placeholder in revealed details for the URL of the attempt's page, set by the web layer."""

VISIT: Final = f"{CUSTOMER} visit"
PAY: Final = f"{CUSTOMER} pay"
CANCEL: Final = f"{CUSTOMER} cancel"
FAIL: Final = f"{CUSTOMER} fail"
CHOOSE: Final = f"{CUSTOMER} choose"
CREDIT: Final = f"{BANK} credit"
APPROVE: Final = f"{SCREENING} approve"
DECLINE: Final = f"{SCREENING} decline"
SCREENING_ERROR: Final = f"{SCREENING} error"
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
        """Return the label for a language tag such as ``nl``; English by default."""
        if tag == "nl-BE" and self.flemish is not None:
            return self.flemish
        return {"nl": self.dutch, "de": self.german, "fr": self.french}.get(str(tag)[:2], self.english)


class DetailField(NamedTuple):
    """A ``payment_method_details`` field of requests; a wrong value breaks ``rule``."""

    name: str
    about: str
    rule: str
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    expected: str = ""
    label: Labels | None = None  # on the hosted page, if the method needs the field


class TriggerValue(NamedTuple):
    """A value that triggers an outcome without a scenario: a customer's email address, or an amount."""

    then: Mapping[str, Any]
    local_part: str | None = None  # the part of the customer's email address before the @
    amount: Cents | None = None


PageKind = Literal["login", "card", "invoice", "sheet", "transfer", "terms", "scan"]
"""The kinds of payment page; ``ui/pages/attempt_page.py`` renders them."""

Icon = Literal["bank", "card", "later", "transfer", "wallet"]
"""The icons in ``ui/pages/assets``."""


BANK_PAGES: Final = ("card", "login", "sheet", "scan")
"""The kinds of pages on which customers confirm a payment with their bank or wallet."""


class Capabilities(NamedTuple):
    """The facts about a method, independent of any order."""

    labels: Labels
    default_expiration: str
    brand: str
    testable: bool = True
    completes_in_test: bool = True
    needs_order_lines: bool = False
    needs_customer: bool = False
    requirement_rules: tuple[tuple[str, str], ...] = ()  # the rule broken without a required key of an order
    refunds_by_lines: bool = False
    authorizes: bool = False
    default_capture_mode: str | None = None
    needs_feature: str | None = None
    outcomes: tuple[frozenset[str], ...] = (PAGE_KEYS,)
    screenings: tuple[str, ...] = ("passed", "declined", "error", "needs-time")
    page: PageKind = "login"  # the kind of the payment page
    icon: Icon = "bank"  # shown in the list of methods
    hint: Labels | None = None  # shown below the method's label in that list
    bank: Labels | None = None  # the name of the customer's bank on its page
    has_issuers: bool = False  # the issuers path lists its banks
    pays_bank_qr: bool = False
    details: tuple[DetailField, ...] = ()
    triggers: tuple[TriggerValue, ...] = ()

    @property
    def screens(self) -> bool:
        """Whether the service screens the customer before the payment."""
        return self.needs_order_lines


class AttemptDraft(NamedTuple):
    """The parts of a request that a method checks; None for missing or unusable values."""

    path: str
    amount_cents: Cents | None
    details: Mapping[str, Any]
    capture_mode: str | None


class Terms(NamedTuple):
    """The parts of a project that methods use: mode, features, vault, clock and identifiers."""

    now: datetime
    is_test: bool
    features: frozenset[str]
    find_credential: Callable[[str], Credential | None]
    ids: Ids
    banks: Sequence["Issuer"] | None = None  # None: any bank, because the list of that time is not known
    issuer_required: bool = True


class Move(NamedTuple):
    """Change the attempt's status, and its order's if the order follows."""

    trigger: Trigger
    reason: str | None = None
    customer_message: str | None = None


class ScheduleAction(NamedTuple):
    """Schedule an automatic action by an actor."""

    after: Period
    action: Action


class Reveal(NamedTuple):
    """Add details to the transaction."""

    details: Mapping[str, Any]
    brand: str | None = None


class OpenPage:
    """Open a payment page for the attempt."""


class Credit(NamedTuple):
    """Credit money to the attempt."""

    amount_cents: Cents


class StoreCard(NamedTuple):
    """Store the card of a first payment in the vault."""

    use: str
    brand: str
    card: Mapping[str, Any]


Step = Move | ScheduleAction | Reveal | OpenPage | Credit | StoreCard


class Method(ABC):
    """A payment method; its functions are pure and return data. By default, nobody acts on an attempt."""

    name: str
    capabilities: Capabilities

    def outcome_keys(self, attempt: Transaction) -> frozenset[str]:
        """Return the outcome keys of scenarios that apply to this attempt."""
        return self.capabilities.outcomes[0]

    def check(self, draft: AttemptDraft, terms: Terms) -> list[Violation]:
        """Return all violations of a request for this method, besides those of the form."""
        return []

    @abstractmethod
    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Return the steps to take when an attempt is created."""

    def visit(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Return the steps to take when the customer visits the payment page."""
        return []

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Return the steps to take after an action; called only with one of ``actions``."""
        return []

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """Return the names of the currently possible actions."""
        return ()


def success_move(attempt: Transaction) -> Move:
    """Return the move on success: an authorization if the attempt has a capture mode, otherwise a sale."""
    return Move(Trigger.AUTHORIZE if attempt.capture_mode else Trigger.PAY)


def planned_delay(attempt: Transaction, default: str = NO_DELAY) -> Period:
    """Return the delay before the actor acts, as planned by the scenario."""
    return Period.parse(attempt.plan.get("after", default))


CUSTOMER_MESSAGE: Final = "The payment failed. Please try again or choose another payment method."

CARD_IN_PHONE: Final = Labels(
    "The card in your phone",
    "De kaart in je telefoon",
    "Die Karte in Ihrem Handy",
    "La carte de votre téléphone",
)

PAGE_TRIGGERS: Final = (
    TriggerValue({"customer": "pays", "after": "PT10S"}, "pays"),
    TriggerValue({"customer": "fails", "after": "PT10S", "reason": "Do not honour"}, "fails"),
    TriggerValue({"customer": "cancels", "after": "PT10S"}, "cancels"),
)
PLANNED_ACTIONS: Final[Mapping[str, str | None]] = {
    "waits": None,
    "pays": "pay",
    "fails": "fail",
    "cancels": "cancel",
    "abandons": "visit",
}
"""The customer's actions on a page, by their names in scenarios."""


class PageMethod(Method):
    """The shared behaviour of all methods with a page."""

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Open the page, and schedule the customer's action if the scenario plans one."""
        return [OpenPage(), *self.planned_steps(attempt, planned_delay(attempt))]

    def planned_steps(self, attempt: Transaction, after: Period) -> Sequence[Step]:
        """Return the customer's automatic action, as planned by the scenario."""
        action = PLANNED_ACTIONS[attempt.plan.get("customer", "waits")]
        if action is None:
            return []
        plan = attempt.plan
        return [
            ScheduleAction(
                after,
                Action(
                    CUSTOMER,
                    action,
                    reason=plan.get("reason"),
                    card=plan.get("card"),
                    authorization=plan.get("authorization"),
                ),
            )
        ]

    def visit(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Start the payment on the first visit; later visits change nothing (SET-36)."""
        return [Move(Trigger.VISIT)] if attempt.status == TransactionStatus.NEW else []

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Pay, fail or cancel."""
        if action.name == PAY:
            return self.payment_steps(attempt, action, terms)
        if action.name == FAIL:
            return [Move(Trigger.FAIL, action.reason or self.default_failure_reason(action))]
        return [Move(Trigger.CANCEL, action.reason or "Cancelled by the customer")]

    def payment_steps(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Reveal the payment details, and complete or authorize the attempt."""
        revealed = self.revealed_details(attempt, terms)
        return [Reveal(revealed), success_move(attempt)] if revealed else [success_move(attempt)]

    def revealed_details(self, attempt: Transaction, terms: Terms) -> Mapping[str, Any]:
        """Return the details that a payment reveals."""
        return {}

    def default_failure_reason(self, action: Action) -> str:
        """Return the default reason for a failure."""
        return "The payment was refused"

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """Return the customer's actions until the attempt ends."""
        if attempt.status in (TransactionStatus.NEW, TransactionStatus.PROCESSING):
            return (VISIT, PAY, CANCEL, FAIL)
        return ()


class Issuer(NamedTuple):
    """A bank that customers can choose."""

    id: Annotated[str, "The bank's BIC."]
    name: str
    list_type: str = "Nederland"


ISSUERS: Final = (
    Issuer("SBXANL2A", "Sandbank"),
    Issuer("DUINNL2U", "Duinbank"),
    Issuer("POLDNL2R", "Polderbank"),
    Issuer("TERPNL2G", "Terp & Zoon"),
    Issuer("WADDNL2L", "Waddenbank"),
)

CREDITOR: Final = {
    "creditor_account_holder_name": "Stichting Sandbox Payments",
    "creditor_account_holder_city": "Amsterdam",
    "creditor_account_holder_country": "NL",
    "creditor_bic": "SBXANL2A",
}


def iban(country: str, account: str) -> str:
    """Build an IBAN with its ISO 13616 check digits; the account has letters and digits."""
    digits = "".join(str(int(character, 36)) for character in f"{account}{country}00")
    return f"{country}{98 - int(digits) % 97:02d}{account}"


def dutch_iban(bic: str, ids: Ids) -> str:
    """Generate an account number at the bank with this BIC."""
    return iban("NL", bic[:4] + ids.digits("account", 10))


def payer(bic: str, ids: Ids) -> dict[str, Any]:
    """Return the name and the account of the payer."""
    return {"consumer_bic": bic, "consumer_iban": dutch_iban(bic, ids), "consumer_name": "J. de Vries"}


DECLINE_TRIGGERS: Final = (
    TriggerValue({"screening": "declined"}, "declined"),
    TriggerValue({"screening": "declined"}, amount=66601),
)
DECLINED_REASON: Final = "The screening declined this customer"
ERROR_MESSAGE: Final = "We could not check your details. Please correct your address and try again."


def decline_move(reason: str | None) -> Move:
    """Return the move for a declined customer (ERR-02)."""
    return Move(Trigger.DECLINE, reason or DECLINED_REASON)


def error_move(reason: str | None) -> Move:
    """Return the move for an error shown on the page that the customer can fix (ERR-01)."""
    return Move(Trigger.FAIL, reason or ERROR_MESSAGE, reason)


SETTLEMENT_DELAY: Final = "PT1M"


class Refund(Method):
    """A pseudo-method for refunds; the order's own method returns the money."""

    name = "refund"
    capabilities = Capabilities(
        labels=Labels("Refund", "Terugbetaling", "Erstattung", "Remboursement"),
        default_expiration="P30D",
        brand="refund",
        outcomes=(PROCESSOR_KEYS,),
        triggers=(
            TriggerValue(
                {"processor": "fails", "after": "PT1M", "reason": "The account to refund to is closed"},
                amount=66605,
            ),
        ),
    )

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Settle at once, unless the scenario defers it (A27)."""
        plan = attempt.plan
        action = Action(
            PROCESSOR, "fail" if plan.get("processor") == "fails" else "settle", reason=plan.get("reason")
        )
        if "after" not in plan:
            return self.finish(attempt, action, terms)
        return [Move(Trigger.START), ScheduleAction(planned_delay(attempt, SETTLEMENT_DELAY), action)]

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Settle or fail."""
        if action.name == REJECT:
            return [Move(Trigger.FAIL, action.reason or "The account to refund to is closed")]
        return [success_move(attempt)]

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """Return the processor's actions while the refund is processing."""
        return (SETTLE, REJECT) if attempt.status == TransactionStatus.PROCESSING else ()
