"""A project's events, as they happen."""

import json
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import requests


class Event(NamedTuple):
    """One thing that happened: ``status``, ``webhook``, ``request``, ``clock``, ``decision``, ..."""

    number: int
    kind: str
    data: dict[str, Any]


def events_of(answer: "requests.Response") -> "Generator[Event, None, None]":
    """Yield the events of a stream until it ends."""
    fields: dict[str, str] = {}
    with answer:
        for line in answer.iter_lines(chunk_size=1, decode_unicode=True):
            name, _, value = line.partition(": ")
            fields[name] = value
            if name == "data":
                yield Event(int(fields["id"]), fields["event"], json.loads(value))
