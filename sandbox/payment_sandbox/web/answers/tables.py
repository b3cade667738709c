"""One table per record: each row defines how a field is read, serialized and documented."""

from collections.abc import Iterable, Mapping
from copy import copy
from operator import attrgetter
from typing import Any, Final, NamedTuple

from marshmallow import Schema, fields

from payment_sandbox.forms import Form
from payment_sandbox.kernel.times import timestamp

COMPUTED: Final = "(computed)"
"""The source of a field whose value is computed, or repeated as it was sent."""
NO_VALUES: Final[Mapping[str, Any]] = {}
CREATE = "create"
UPDATE = "update"


class RecordField(NamedTuple):
    """One field of a record.

    ``shape`` describes the value in responses; it defaults to ``reads``, or to a string. ``reads`` parses the
    value in a request that creates the record; without it, requests cannot set the field. Requests may also
    change a field that ``is_updatable``. ``source`` is the attribute of the record's subject, by default that
    with the field's name. ``always`` marks a field of every response. ``rule`` is the field's rule in the
    ledger, which a wrong value in a request breaks.
    """

    name: str
    shape: Any = None
    reads: Any = None
    source: str | None = None
    is_updatable: bool = False
    always: bool = False
    rule: str | None = None

    @property
    def is_moment(self) -> bool:
        """Whether the value is a moment, which a response has as a timestamp."""
        return isinstance(self.shape, fields.Field) and self.shape.metadata.get("format") == "date-time"

    def is_accepted(self, on: str) -> bool:
        """Whether a request to ``create`` or to ``update`` the record may set the field."""
        return self.reads is not None and (on == CREATE or self.is_updatable)


class Table:
    """The fields of one kind of record, in the order of responses."""

    def __init__(self, name: str, about: str, rows: Iterable[RecordField]) -> None:
        self.name = name
        self.rows = tuple(rows)
        self._getters = [
            (row.name, None if row.source == COMPUTED else attrgetter(row.source or row.name), row.is_moment)
            for row in self.rows
        ]
        self.shape = self._shape(about)

    def record(
        self, subject: Any, computed: Mapping[str, Any] = NO_VALUES, sent: Mapping[str, Any] = NO_VALUES
    ) -> dict[str, Any]:
        """Serialize a subject, without fields that are None, except those that were ``sent`` as null."""
        shown: dict[str, Any] = {}
        for name, getter, is_moment in self._getters:
            if getter is not None:
                value = getter(subject)
            else:
                value = computed[name] if name in computed else sent.get(name)
            if value is not None:
                shown[name] = timestamp(value) if is_moment else value
            elif name in sent:
                shown[name] = None
        return shown

    def form(self, name: str, about: str, on: str, **methods: Any) -> type[Form]:
        """Build the form for requests with these fields; ``methods`` adds checks."""
        read = {row.name: row.reads for row in self.rows if row.is_accepted(on)}
        return type(name, (Form,), {"__doc__": about, "__module__": __name__, **read, **methods})

    def read_only_fields(self, on: str) -> frozenset[str]:
        """Return the fields of responses that these requests cannot set."""
        return frozenset(row.name for row in self.rows if not row.is_accepted(on))

    def rules(self, path: str = "") -> dict[str, str]:
        """Map the paths of fields in requests to the rules broken by wrong values."""
        return {
            f"{path}{row.name}": row.rule
            for row in self.rows
            if row.rule is not None and row.is_accepted(CREATE)
        }

    def _shape(self, about: str) -> type[Schema]:
        described = {}
        for row in self.rows:
            field = copy(row.shape or row.reads or text())
            field.required = row.always
            described[row.name] = field
        return type(f"{self.name}Shape", (Schema,), {"__doc__": about, "__module__": __name__, **described})


def text(about: str = "", **metadata: Any) -> fields.String:
    """Describe a string field of a response."""
    return fields.String(metadata={"description": about, **metadata} if about else metadata)


def number(about: str = "", **metadata: Any) -> fields.Integer:
    """Describe an integer field of a response."""
    return fields.Integer(metadata={"description": about, **metadata} if about else metadata)


def moment(about: str = "") -> fields.String:
    """Describe a date-time field of a response."""
    return text(about, format="date-time")
