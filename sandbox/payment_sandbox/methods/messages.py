"""What customers read about a payment that has ended without money, in the languages of the pages."""

from collections.abc import Mapping
from typing import Final

from payment_sandbox.methods.common import CUSTOMER_MESSAGE, DECLINED_REASON, ERROR_MESSAGE, Labels
from payment_sandbox.orders.order import DEFAULT_LOCALE, Order
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.transaction import Transaction

DEFAULT_REASONS: Final[Mapping[str, str]] = {
    TransactionStatus.CANCELLED: "The payment was cancelled",
    TransactionStatus.EXPIRED: "The payment was not completed in time",
    TransactionStatus.ERROR: "The payment was refused",
}
"""The reasons of attempts that ended without a more precise one, by status."""
DECLINED: Final = Labels(
    "This payment method is not available for your order. Please choose another one.",
    "Deze betaalmethode is niet beschikbaar voor je bestelling. Kies een andere.",
    "Diese Zahlungsart ist für Ihre Bestellung nicht verfügbar. Bitte wählen Sie eine andere.",
    "Ce moyen de paiement n'est pas disponible pour votre commande. Veuillez en choisir un autre.",
)
CHECK_FAILED: Final = Labels(
    ERROR_MESSAGE,
    "We konden je gegevens niet controleren. Verbeter je adres en probeer het opnieuw.",
    "Wir konnten Ihre Angaben nicht prüfen. Bitte korrigieren Sie Ihre Adresse und versuchen Sie es erneut.",
    "Nous n'avons pas pu vérifier vos données. Corrigez votre adresse et réessayez.",
)
MESSAGES: Final[Mapping[str, Labels]] = {
    TransactionStatus.ERROR: Labels(
        CUSTOMER_MESSAGE,
        "De betaling is mislukt. Probeer het opnieuw of kies een andere betaalmethode.",
        "Die Zahlung ist fehlgeschlagen. Versuchen Sie es erneut oder wählen Sie eine andere Zahlungsart.",
        "Le paiement a échoué. Veuillez réessayer ou choisir un autre moyen de paiement.",
    ),
    TransactionStatus.CANCELLED: Labels(
        "The payment was cancelled.",
        "De betaling is geannuleerd.",
        "Die Zahlung wurde abgebrochen.",
        "Le paiement a été annulé.",
    ),
    TransactionStatus.EXPIRED: Labels(
        "The payment was not completed in time.",
        "De betaling is niet op tijd afgerond.",
        "Die Zahlung wurde nicht rechtzeitig abgeschlossen.",
        "Le paiement n'a pas été effectué à temps.",
    ),
}
"""The messages about an attempt, by its status."""
REASONS: Final[Mapping[str, Labels]] = {
    DECLINED_REASON: Labels(
        DECLINED_REASON,
        "De controle heeft deze klant geweigerd",
        "Die Prüfung hat diesen Kunden abgelehnt",
        "L'examen a refusé ce client",
    ),
    ERROR_MESSAGE: CHECK_FAILED,
    "Do not honour": Labels(
        "Do not honour",
        "Geweigerd door je bank",
        "Von Ihrer Bank abgelehnt",
        "Refusé par votre banque",
    ),
    "Insufficient funds": Labels(
        "Insufficient funds", "Onvoldoende saldo", "Nicht genügend Guthaben", "Solde insuffisant"
    ),
    "Suspected fraud": Labels(
        "Suspected fraud", "Vermoeden van fraude", "Verdacht auf Betrug", "Suspicion de fraude"
    ),
    "Expired card": Labels("Expired card", "Verlopen kaart", "Abgelaufene Karte", "Carte expirée"),
    "The payment was refused": Labels(
        "The payment was refused",
        "De betaling is geweigerd",
        "Die Zahlung wurde abgelehnt",
        "Le paiement a été refusé",
    ),
    "Cancelled by the customer": Labels(
        "Cancelled by the customer",
        "Geannuleerd door de klant",
        "Vom Kunden abgebrochen",
        "Annulé par le client",
    ),
    "Cancelled by the merchant": Labels(
        "Cancelled by the merchant",
        "Geannuleerd door de winkel",
        "Vom Shop abgebrochen",
        "Annulé par la boutique",
    ),
}
"""The sandbox's own reasons, as its pages show them; a scenario's reason is shown as it is."""


def reason_of(attempt: Transaction) -> str | None:
    """Return the reason why an attempt has ended without a payment; None if it has not."""
    return attempt.reason or (
        None if attempt.credit_debit == "debit" else DEFAULT_REASONS.get(attempt.status)
    )


def customer_message_of(order: Order, attempt: Transaction) -> str | None:
    """Return the text for the customer of an attempt that has ended without a payment (A71)."""
    if attempt.customer_message is not None or attempt.credit_debit == "debit":
        return attempt.customer_message
    labels = MESSAGES.get(attempt.status)
    if labels is None:
        return None
    if attempt.reason == ERROR_MESSAGE:
        labels = CHECK_FAILED
    elif attempt.status == TransactionStatus.CANCELLED and not attempt.has_page:
        labels = DECLINED  # by a screening, before the page existed
    return str(labels[order.page_locale or DEFAULT_LOCALE])


def translate_reason(reason: str, tag: str) -> str:
    """Return a reason in the language of a page; a scenario's reason as it is."""
    return str(REASONS[reason][tag]) if reason in REASONS else reason
