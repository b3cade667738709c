"""What happened, for webhooks, the event stream and the logs."""

from datetime import datetime
from typing import NamedTuple


class StatusChanged(NamedTuple):
    """An order or a transaction went from one status to another."""

    subject_id: str
    before: str
    after: str
    at: datetime
