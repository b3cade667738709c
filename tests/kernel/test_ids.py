"""Identifiers come from seeded streams, one per kind."""

from uuid import UUID

from payment_sandbox.kernel.ids import Ids, fresh_seed


def test_the_same_seed_gives_the_same_identifiers() -> None:
    """Whatever was drawn of other kinds in between."""
    one, other = Ids(7), Ids(7)
    one.digits("reference", 16)
    assert [one.uuid("order") for _ in range(3)] == [other.uuid("order") for _ in range(3)]
    assert Ids(8).uuid("order") != Ids(7).uuid("order")


def test_kinds_and_numbers_never_meet() -> None:
    """A thousand draws of two kinds are two thousand identifiers, each a version 4 UUID."""
    ids = Ids(1)
    drawn = {ids.uuid(kind) for kind in ("order", "event") for _ in range(1000)}
    assert len(drawn) == 2000
    assert {(UUID(text).version, str(UUID(text)) == text) for text in drawn} == {(4, True)}


def test_a_stream_goes_on_from_its_counts() -> None:
    """Seed and counts are its whole state."""
    ids = Ids(1)
    ids.uuid("order")
    again = Ids(1, ids.counts)
    assert again.uuid("order") == ids.uuid("order")
    assert len(ids.digits("reference", 16)) == 16
    assert 0 <= ids.number("x", 10) < 10
    assert fresh_seed() != fresh_seed()
