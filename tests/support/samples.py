"""Samples of slow tests: a run takes some of them, and other ones each day."""

import os
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, TypeVar

from tests.attack import FULL

Case = TypeVar("Case")
DAY = os.environ.get("DAY", "")
"""Seeds the samples of a run, see the Makefile."""


def of_the_day(cases: Iterable[Case], count: int) -> list[Case]:
    """Return some of these cases, in a random order that differs each day; at full size, return all."""

    def rank(case: Any) -> bytes:
        return sha256(f"{DAY}/{case}".encode()).digest()

    return sorted(cases, key=rank)[: None if FULL else count]
