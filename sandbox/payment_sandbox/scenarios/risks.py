"""The risks of mistakes for a shop and its customers, in words."""

from typing import Final

UNPAID_GOODS: Final = "goods ship without a successful payment"
UNSHIPPED: Final = "a customer has paid and waits for goods"
DOUBLE_PAYMENT: Final = "a customer pays twice for one basket"
DUPLICATION: Final = "goods ship twice, or money is refunded twice"
LAPSE: Final = "the authorization has lapsed, and shipped goods stay unpaid"
DEBT: Final = "a customer is owed money, but never gets it"
UNDONE_PAYMENT: Final = "a late webhook or a stale read undoes a payment"
BLOCKED_SHOP: Final = "one hanging call blocks the shop for all customers"
RATE_LIMITED_SHOP: Final = "the service rate-limits shops that poll, and refuses their calls"
NO_CAPTURE: Final = "goods ship although the capture was refused"
MIXED_UP_CUSTOMERS: Final = "one customer's payment is credited to another customer"
