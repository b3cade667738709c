"""All attacks, by name."""

from collections.abc import Callable, Mapping
from typing import Final

from tests.attack import Report, crowds, large, receivers

ATTACKS: Final[Mapping[str, Callable[[Report], None]]] = {
    "crowds": crowds.attack,
    "receivers": receivers.attack,
    "large": large.attack,
}
