"""What a shop believes of its purchases, for those who compare it with what the service knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class BookEntry:
    """What a shop believes of one purchase; all amounts are cents.

    ``orders`` are the ids of all payment orders that it created for the purchase. ``shipped`` is the price of
    what has left the shop. ``refunded`` is what the customer was given back.
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
        """An entry, or a mapping with its fields.

        Raises:
            ValueError: it is something else, or has other fields.
        """
        if isinstance(entry, cls):
            return entry
        known = [field.name for field in fields(cls)]
        if not isinstance(entry, Mapping) or not {"purchase", "orders"} <= entry.keys() <= set(known):
            raise ValueError(
                f"payment_books tells entries with {', '.join(known)} (the first two required); not {entry!r}"
            )
        return cls(**entry)
