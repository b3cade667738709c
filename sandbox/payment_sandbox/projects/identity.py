"""The identity of a project."""

from typing import NamedTuple

from payment_sandbox.projects.clock import ClockStart


class Identity(NamedTuple):
    """The ids and the key of a project; the key is stored as a digest only."""

    project_id: str
    merchant_id: str
    key_digest: str
    start: ClockStart
    has_fixed_key: bool = False  # the user chose the key, and may choose it again
    origin: str = ""  # random, because another server with the same seed has the same ids
