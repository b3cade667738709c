"""The books of a shop: its own record of purchases, for comparison with the service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class BookEntry:
    """The shop's record of one purchase; all amounts are cents.

    ``orders`` lists the ids of all payment orders for the purchase. ``shipped`` is the price of the shipped
    goods. ``refunded`` is the amount returned to the customer.
    """

    purchase: str
    orders: Sequence[str]
    amount: int = 0
    paid: int = 0
    shipped: int = 0
    refunded: int = 0
    cancelled: bool = False

    @classmethod
    def read(cls, entry: Any) -> "BookEntry":
        """Convert an entry, or a mapping with its fields.

        Raises:
            ValueError: the value is neither an entry nor a mapping, or has unknown fields.
        """
        if isinstance(entry, cls):
            return entry
        known = [field.name for field in fields(cls)]
        if not isinstance(entry, Mapping) or not {"purchase", "orders"} <= entry.keys() <= set(known):
            raise ValueError(
                f"payment_books must return entries with {', '.join(known)} (the first two required); "
                f"not {entry!r}"
            )
        return cls(**entry)
