"""The space of rehearsals is complete: each outcome has a variation, or a reason for its exclusion."""

import pytest

from payment_sandbox.orders.refusals import Refusal, refusal_classes
from payment_sandbox.scenarios import variation_catalogue
from payment_sandbox.scenarios.effects import Fault, Truncate
from payment_sandbox.scenarios.variation import CHANGE, READ, Variation
from tests.scenarios.space import (
    ANY_OUTCOME,
    EXCLUSION_REASONS,
    Cell,
    all_cells,
    exclusion_reason,
    variations_by_cell,
)


def test_every_cell_has_a_variation_or_a_reason() -> None:
    """A new effect, action, refusal or outcome needs a variation, or a reason for its exclusion."""
    known = variations_by_cell()
    assert [cell for cell in all_cells() if cell not in known and not exclusion_reason(cell)] == []
    assert len(known) > 60


def test_every_variation_has_a_cell() -> None:
    """Every variation is in a cell: otherwise the space would miss its outcome."""
    known = variations_by_cell()
    assert set(known) <= set(all_cells())
    filled = {name for names in known.values() for name in names}
    assert filled == {
        f"{kind}:{each.name}" for each in variation_catalogue.rehearsal_variations() for kind in each.kinds
    }


def test_no_reason_is_stale() -> None:
    """Every reason belongs to an existing cell without a variation."""
    known, every = variations_by_cell(), all_cells()
    empty = [cell for cell in every if cell not in known]
    wide = {Cell(cell.interaction, ANY_OUTCOME) for cell in empty if cell not in EXCLUSION_REASONS}
    assert set(EXCLUSION_REASONS) <= {*empty, *wide}


def test_a_new_refusal_is_a_cell() -> None:
    """A new refusal class is a cell with neither a variation nor a reason."""

    class NotToday(Refusal):
        """A new refusal."""

    NotToday.__module__ = "payment_sandbox.orders.refusals"
    assert NotToday in set(refusal_classes())
    assert Cell(CHANGE, "NotToday") in all_cells()
    assert exclusion_reason(Cell(CHANGE, "NotToday")) is None
    NotToday.__module__ = __name__


def test_a_variation_fills_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variation belongs to the cell of its effect, without another registration."""
    cut = Variation("cut", "{step} was cut off", Fault(Truncate()), "it hangs", kinds=(READ,))
    assert Cell(READ, "truncate") not in variations_by_cell()
    monkeypatch.setattr(variation_catalogue, "VARIATIONS", (*variation_catalogue.VARIATIONS, cut))
    assert variations_by_cell()[Cell(READ, "truncate")] == ["read:cut"]
