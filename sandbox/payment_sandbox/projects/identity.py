"""The identity of a project."""

from typing import NamedTuple

from payment_sandbox.projects.clock import Start


class Identity(NamedTuple):
    """The ids and the key of a project; only the digest of the key is stored."""

    project_id: str
    merchant_id: str
    key_digest: str
    start: Start
    has_fixed_key: bool = False  # whether the user chose the key; such keys may be reused
    origin: str = ""  # random; servers with the same seed have the same ids
