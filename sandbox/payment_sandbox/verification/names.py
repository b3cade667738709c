"""The names of payment methods: the ledger's, and those of the account that is verified."""

from collections.abc import Mapping
from typing import Any

Names = Mapping[str, str]
"""The account's names of methods, by the ledger's."""


def renamed(value: Any, names: Names) -> Any:
    """A JSON value with other names, wherever one stands alone: as a value, or as a key."""
    if not names:
        return value
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {names.get(key, key): renamed(inner, names) for key, inner in value.items()}
    return [renamed(item, names) for item in value] if isinstance(value, list) else value


def renamed_path(path: str, names: Names) -> str:
    """A path with other names in its segments."""
    return "/".join(names.get(part, part) for part in path.split("/")) if names else path


def reverse(names: Names) -> dict[str, str]:
    """The ledger's names, by the account's."""
    return {theirs: name for name, theirs in names.items()}
