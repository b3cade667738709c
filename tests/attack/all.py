"""All attacks, by name."""

from collections.abc import Callable, Mapping
from typing import Final

from tests.attack import (
    Report,
    chaos,
    crowds,
    kills,
    large,
    mutations,
    quotas,
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
    "large": large.attack,
    "mutations": mutations.attack,
    "requests": requests.attack,
    "quotas": quotas.attack,
    "chaos": chaos.attack,
    "kills": kills.attack,
    "servers": servers.attack,
    "soak": soak.attack,
}
