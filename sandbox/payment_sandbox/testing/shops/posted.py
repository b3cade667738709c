"""A webhook on its way to an application in this process."""

from typing import NamedTuple


class Posted(NamedTuple):
    """One webhook."""

    url: str
    headers: list[tuple[str, str]]
    body: bytes
