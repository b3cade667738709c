"""The probes: what a caller can find out about the rules of the ledger, as a table and as conversations."""

from collections.abc import Iterator
from typing import Final

from payment_sandbox_verify.probes import (
    authorizations,
    codes,
    conversations,
    methods,
    orders,
    patience,
)
from payment_sandbox_verify.probing import PROBES, Probe

TABLES: Final = (*orders.TABLE, *authorizations.TABLE, *codes.TABLE, *methods.TABLE)
CONVERSATIONS: Final = (conversations, patience)


def all_probes() -> Iterator[Probe]:
    """Every probe, in the order in which they run: the simple ones first."""
    yield from (section.probe for section in TABLES)
    for module in CONVERSATIONS:
        yield from (each for each in PROBES if each.run.__module__ == module.__name__)
