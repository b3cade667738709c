"""The eleven payment methods, each a module of its own; a twelfth is one more module and one more line."""

from typing import Final

from sandbox.methods.bank_redirect_be import BankRedirectBe
from sandbox.methods.bank_redirect_de import BankRedirectDe
from sandbox.methods.bank_redirect_nl import BankRedirectNl
from sandbox.methods.bank_transfer import BankTransfer
from sandbox.methods.base import Method
from sandbox.methods.credit_card import CreditCard
from sandbox.methods.invoice_later_b import InvoiceLaterB
from sandbox.methods.pay_later_a import PayLaterA
from sandbox.methods.refund import Refund
from sandbox.methods.wallet_apple import WalletApple
from sandbox.methods.wallet_google import WalletGoogle
from sandbox.methods.wallet_qr import WalletQr
from sandbox.methods.wallet_web import WalletWeb
from sandbox.orders.transaction import Transaction

ALL: Final[tuple[Method, ...]] = (
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
BY_NAME: Final = {method.name: method for method in ALL}
NAMES: Final = tuple(BY_NAME)
WITH_ISSUERS: Final = BankRedirectNl.name
SCANNED_BY: Final = BankRedirectNl.name  # a bank QR code is paid by online banking
REFUND: Final[Method] = Refund()


def behaviour_of(transaction: Transaction) -> Method:
    """What plays a transaction out: its method, or the refund process for money that goes back."""
    return REFUND if transaction.credit_debit == "debit" else BY_NAME[transaction.method]
