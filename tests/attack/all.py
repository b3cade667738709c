"""All attacks, by name."""

from collections.abc import Callable, Mapping
from typing import Final

from tests.attack import (
    Report,
    canaries,
    chaos,
    crowds,
    full_disk,
    fuzzing,
    kills,
    large,
    mutations,
    quotas,
    receivers,
    requests,
    servers,
    shares,
    soak,
    takeovers,
    texts,
)

ATTACKS: Final[Mapping[str, Callable[[Report], None]]] = {
    "crowds": crowds.attack,
    "shares": shares.attack,
    "receivers": receivers.attack,
    "large": large.attack,
    "texts": texts.attack,
    "full disk": full_disk.attack,
    "mutations": mutations.attack,
    "requests": requests.attack,
    "quotas": quotas.attack,
    "canaries": canaries.attack,
    "grammar": fuzzing.attack,
    "chaos": chaos.attack,
    "kills": kills.attack,
    "servers": servers.attack,
    "takeovers": takeovers.attack,
    "soak": soak.attack,
}
