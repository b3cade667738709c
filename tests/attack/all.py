"""All attacks, by name."""

from collections.abc import Callable, Mapping
from typing import Final

from tests.attack import Report, mutations, receivers, requests, shares, soak

ATTACKS: Final[Mapping[str, Callable[[Report], None]]] = {
    "shares": shares.attack,
    "receivers": receivers.attack,
    "mutations": mutations.attack,
    "requests": requests.attack,
    "soak": soak.attack,
}
