"""The typed client has all fields of the merchant's records."""

from tests.typed_records import FILE, written


def test_the_types_are_those_of_the_tables() -> None:
    """The generated file is current; if not, run ``python -m tests.typed_records``."""
    assert FILE.read_text(encoding="utf-8") == written()
