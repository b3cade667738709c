"""Which project it is."""

from typing import NamedTuple

from payment_sandbox.projects.clock import ClockStart


class Identity(NamedTuple):
    """The identity of a project; its key is stored as a digest only."""

    project_id: str
    merchant_id: str
    key_digest: str
    start: ClockStart
    has_fixed_key: bool = False  # chosen by the user, who may choose it again
    origin: str = ""  # random: another server with the same seed has the same ids
