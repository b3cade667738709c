"""What YAML becomes, and where each part of it stands."""

from payment_sandbox.scenarios.documents import Place, parse_yaml

MERGED = """\
base: &base {times: 1}
rules:
  - <<: *base
  - <<: *base
    note: &yes true
same: *yes
"""


def test_what_is_merged_in_has_no_place_of_its_own() -> None:
    """Its parent's is the nearest."""
    document = parse_yaml(MERGED)
    assert document.data["rules"] == [{"times": 1}, {"note": True, "times": 1}]
    assert document.place_of("base.times") == Place(1, 14)
    assert document.place_of("rules[0].times") == Place(3, 5)
    assert document.place_of("rules[1].note") == Place(5, 5)
    assert "rules[1].times" not in document.places


def test_true_with_an_anchor_is_true() -> None:
    """And no number."""
    document = parse_yaml(MERGED)
    assert document.data["rules"][1]["note"] is True
    assert document.data["same"] is True
