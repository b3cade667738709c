"""The mails that a shop in this process sends: Django's outbox in tests, and what Flask-Mail dispatches."""

import sys
from collections.abc import Iterable
from typing import Any, Final

DJANGO: Final = "django.core.mail"
FLASK: Final = "flask_mail"


class MailBox:
    """Collects the mails of one run."""

    def __init__(self) -> None:
        self._dispatched: list[Any] = []
        self._signal: Any = None
        self._early: int | None = None
        self._connect()

    def _connect(self) -> None:
        """Listen to Flask-Mail, once the shop has loaded it."""
        if self._signal is None:
            self._signal = getattr(sys.modules.get(FLASK), "email_dispatched", None)
            if self._signal is not None:
                self._signal.connect(self._note)

    def _note(self, message: Any, **more: Any) -> None:
        self._dispatched.append(message)

    def mark(self) -> None:
        """Somebody acts; the first time counts."""
        self._connect()
        if self._early is None:
            self._early = len(self.texts())

    @property
    def early(self) -> int:
        """How many mails there were before somebody acted."""
        return self._early or 0

    def texts(self) -> list[str]:
        """The mails so far: receivers, subject and text."""
        outbox: Iterable[Any] = getattr(sys.modules.get(DJANGO), "outbox", ())
        return [
            f"{', '.join(each.recipients() if callable(each.recipients) else each.recipients)}: "
            f"{each.subject}\n{each.body or getattr(each, 'html', '')}"
            for each in (*outbox, *self._dispatched)
        ]

    def close(self) -> None:
        """Collect no more."""
        if self._signal is not None:
            self._signal.disconnect(self._note)
