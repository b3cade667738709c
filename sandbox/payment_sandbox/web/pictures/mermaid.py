"""A sequence picture as Mermaid text, for bug reports."""

from collections.abc import Iterator

from payment_sandbox.web.pictures.sequence import LANES, Row, Sequence


def mermaid(picture: Sequence) -> str:
    """The picture as a ``sequenceDiagram``."""
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: Sequence) -> Iterator[str]:
    yield "sequenceDiagram"
    for lane in picture.lanes:
        yield f"    participant {lane} as {LANES[lane]}"
    if picture.left_out:
        yield f"    Note over {picture.lanes[0]}: {picture.left_out} earlier entries are left out"
    for row in picture.rows:
        if row.time:
            yield f"    Note over {picture.lanes[0]}: {_safe(row.time)}"
        yield f"    {_row(row)}"


def _row(row: Row) -> str:
    label = _safe(row.label)
    if row.sender == row.receiver:
        return f"Note over {row.sender}: {label}"
    arrow = {"failed": "--x" if row.is_answer else "-x"}.get(row.look, "-->>" if row.is_answer else "->>")
    return f"{row.sender}{arrow}{row.receiver}: {label}"


def _safe(text: str) -> str:
    """Text that ends no line and opens no tag; # and ; would begin an entity or end a statement."""
    return " ".join(text.replace("#", "no. ").replace(";", ",").replace("<", "(").replace(">", ")").split())
