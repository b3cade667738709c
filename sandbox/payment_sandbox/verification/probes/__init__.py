"""The probes: what a caller can find out about the rules of the ledger, one module per part of the API."""

from collections.abc import Iterator
from typing import Final

from payment_sandbox.verification.probes import answers, invoices, methods, pages, patience
from payment_sandbox.verification.probing import PROBES, Probe

MODULES: Final = (answers, invoices, pages, methods, patience)


def all_probes() -> Iterator[Probe]:
    """Every probe, in the order in which they run: the simple ones first."""
    for module in MODULES:
        yield from (each for each in PROBES if each.run.__module__ == module.__name__)
