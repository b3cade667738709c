"""The probes: checks of the ledger's rules that are observable through the API."""

from collections.abc import Iterator
from typing import Final

from payment_sandbox_verify.probes import conversations as conversations
from payment_sandbox_verify.probes import patience as patience
from payment_sandbox_verify.probes.values import value_probes
from payment_sandbox_verify.probing import PROBES, Probe
from payment_sandbox_verify.walking.walker import Walker

MODULES: Final = ("values", "conversations", "patience")


def all_probes() -> Iterator[Probe]:
    """Yield the probes in order of execution: fields, call sequences, conversations, and slow probes last."""
    yield from value_probes()
    yield from Walker().probes()
    for module in MODULES:
        yield from (each for each in PROBES if each.run.__module__ == f"{__name__}.{module}")
