"""The space of rehearsals is complete: each outcome has a variation, or a reason for its exclusion."""

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
    assert set(known) <= set(all_cells())
    assert len(known) > 30


def test_no_reason_is_stale() -> None:
    """Every reason belongs to an existing cell without a variation."""
    known, every = variations_by_cell(), all_cells()
    empty = [cell for cell in every if cell not in known]
    wide = {Cell(cell.interaction, ANY_OUTCOME) for cell in empty if cell not in EXCLUSION_REASONS}
    assert set(EXCLUSION_REASONS) <= {*empty, *wide}
