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
    servers,
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
    "servers": servers.attack,
    "soak": soak.attack,
}
