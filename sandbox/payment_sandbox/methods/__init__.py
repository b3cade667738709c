"""The payment methods, one module each; to add a method, write a module and list it in ``ALL_METHODS``.

Other packages may import this package, ``common`` and ``messages``.
"""

from typing import Final

from payment_sandbox.methods.bank_redirect_be import BankRedirectBe
from payment_sandbox.methods.bank_redirect_de import BankRedirectDe
from payment_sandbox.methods.bank_redirect_nl import BankRedirectNl
from payment_sandbox.methods.bank_transfer import BankTransfer
from payment_sandbox.methods.common import DetailField, Method, Refund
from payment_sandbox.methods.credit_card import CreditCard
from payment_sandbox.methods.invoice_later_b import InvoiceLaterB
from payment_sandbox.methods.pay_later_a import PayLaterA
from payment_sandbox.methods.wallet_apple import WalletApple
from payment_sandbox.methods.wallet_google import WalletGoogle
from payment_sandbox.methods.wallet_qr import WalletQr
from payment_sandbox.methods.wallet_web import WalletWeb
from payment_sandbox.orders.transaction import Transaction

ALL_METHODS: Final[tuple[Method, ...]] = (
    CreditCard(),
    BankTransfer(),
    BankRedirectNl(),
    BankRedirectBe(),
    BankRedirectDe(),
    WalletQr(),
    WalletWeb(),
    WalletApple(),
    WalletGoogle(),
    PayLaterA(),
    InvoiceLaterB(),
)
METHODS_BY_NAME: Final = {method.name: method for method in ALL_METHODS}
METHOD_NAMES: Final = tuple(METHODS_BY_NAME)
BANK_QR_METHOD: Final = next(method.name for method in ALL_METHODS if method.capabilities.pays_bank_qr)
REFUND: Final[Method] = Refund()


def details_fields() -> dict[str, DetailField]:
    """Return the ``payment_method_details`` fields of all methods, by name."""
    return {field.name: field for method in ALL_METHODS for field in method.capabilities.details}


def behaviour_of(transaction: Transaction) -> Method:
    """Return the method that controls a transaction, or ``REFUND`` for a refund."""
    return REFUND if transaction.credit_debit == "debit" else METHODS_BY_NAME[transaction.method]
