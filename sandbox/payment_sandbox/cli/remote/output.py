"""How commands print: tables, times and amounts; and how they read ``name=value``."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

Row = Sequence[object]


def columns(rows: Iterable[Row], heads: Row, empty: str) -> str:
    """A table for people: as wide as it needs to be, so that identifiers can be copied."""
    texts = [[shown(cell) for cell in row] for row in rows]
    if not texts:
        return empty
    table = [[str(head).upper() for head in heads], *texts]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def shown(value: object) -> str:
    """A value as people write it."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def short_time(moment: str) -> str:
    """A time without fractions and offset, which is always UTC."""
    return moment[:19].replace("T", " ")


def money(item: Mapping[str, Any]) -> str:
    """An amount with its currency."""
    whole, cents = divmod(int(item["amount"]), 100)
    return f"{whole}.{cents:02} {item['currency']}"


def assignments(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Split ``name=value``."""
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.UsageError(f"{text!r} is not name=value, such as mode=live")
        yield name, value


def value_of(text: str) -> Any:
    """A value as JSON if it is some, or else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
