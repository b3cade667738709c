"""All attacks, by name."""

from collections.abc import Callable, Mapping
from typing import Final

from tests.attack import (
    Report,
    canaries,
    chaos,
    crowds,
    mutations,
    receivers,
    requests,
    shares,
    soak,
)

ATTACKS: Final[Mapping[str, Callable[[Report], None]]] = {
    "crowds": crowds.attack,
    "shares": shares.attack,
    "receivers": receivers.attack,
    "mutations": mutations.attack,
    "requests": requests.attack,
    "canaries": canaries.attack,
    "chaos": chaos.attack,
    "soak": soak.attack,
}
