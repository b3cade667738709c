"""Identifiers are drawn from seeded streams, one per kind."""

from uuid import UUID

from payment_sandbox.kernel.ids import Ids, fresh_seed


def test_the_same_seed_gives_the_same_identifiers() -> None:
    """The same seed gives the same identifiers, independent of draws of other kinds."""
    one, other = Ids(7), Ids(7)
    one.digits("reference", 16)
    assert [one.uuid("order") for _ in range(3)] == [other.uuid("order") for _ in range(3)]
    assert Ids(8).uuid("order") != Ids(7).uuid("order")


def test_identifiers_are_unique() -> None:
    """Two thousand draws of two kinds are distinct version 4 UUIDs."""
    ids = Ids(1)
    identifiers = {ids.uuid(kind) for kind in ("order", "event") for _ in range(1000)}
    assert len(identifiers) == 2000
    assert {(UUID(text).version, str(UUID(text)) == text) for text in identifiers} == {(4, True)}


def test_a_stream_continues_from_its_counts() -> None:
    """A stream continues from its seed and its counts."""
    ids = Ids(1)
    ids.uuid("order")
    continued = Ids(1, ids.counts)
    assert continued.uuid("order") == ids.uuid("order")
    assert len(ids.digits("reference", 16)) == 16
    assert 0 <= ids.number("x", 10) < 10
    assert fresh_seed() != fresh_seed()
