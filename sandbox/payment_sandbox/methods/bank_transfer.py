"""A SEPA transfer: the money may arrive days later, in a different amount, or never."""

from collections.abc import Sequence

from payment_sandbox.kernel.times import Period
from payment_sandbox.methods.common import (
    CREDIT,
    CREDITOR,
    ISSUERS,
    NO_DELAY,
    Capabilities,
    Credit,
    Labels,
    Method,
    Move,
    OpenPage,
    Reveal,
    ScheduleAction,
    Step,
    Terms,
    TriggerValue,
    dutch_iban,
    payer,
)
from payment_sandbox.orders.actions import BANK, Action
from payment_sandbox.orders.statuses import TransactionStatus, Trigger
from payment_sandbox.orders.transaction import Transaction


class BankTransfer(Method):
    """A transfer, pending until the bank credits it; in test mode, it stays pending (SEPA-01, SEPA-04)."""

    name = "bank-transfer"
    capabilities = Capabilities(
        labels=Labels("Bank transfer", "Overschrijving", "Überweisung", "Virement bancaire"),
        triggers=(TriggerValue({"credit": {"after": "P2D"}}, "transfers"),),
        icon="transfer",
        hint=Labels("Takes 1 to 3 days", "Duurt 1 tot 3 dagen", "Dauert 1 bis 3 Tage", "De 1 à 3 jours"),
        default_expiration="P30D",
        completes_in_test=False,
        brand="sepa",
        page="transfer",
        outcomes=(frozenset({"credit"}),),
    )

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Reveal the creditor's account, and wait for the bank."""
        details = {
            "reference": "9" + terms.ids.digits("reference", 15),
            **CREDITOR,
            "creditor_iban": dutch_iban(CREDITOR["creditor_bic"], terms.ids),
            "consumer_bic": None,
            "consumer_iban": None,
            "consumer_name": None,
        }
        steps: list[Step] = [Reveal(details), OpenPage(), Move(Trigger.PEND)]
        credit = attempt.plan.get("credit", "never")
        if credit == "never" or terms.is_test:
            return steps
        action = Action(BANK, "credit", amount_cents=credit.get("amount"))
        return [*steps, ScheduleAction(Period.parse(credit.get("after", NO_DELAY)), action)]

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Complete the transfer once its amount has arrived; a completed one can be paid again (A29)."""
        missing_cents = attempt.amount_cents - attempt.credited_cents
        default_cents = missing_cents if missing_cents > 0 else attempt.amount_cents
        credit = Credit(default_cents if action.amount_cents is None else action.amount_cents)
        if credit.amount_cents < missing_cents or attempt.status == TransactionStatus.COMPLETED:
            return [credit]
        return [credit, Reveal(payer(ISSUERS[0].id, terms.ids)), Move(Trigger.PAY)]

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """Return the bank's credit: whoever knows the reference can pay, except in test mode (A29)."""
        return () if terms.is_test else (CREDIT,)
