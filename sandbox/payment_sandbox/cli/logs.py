"""What a served sandbox logs: text for people, or one JSON object per line; never a secret."""

import json
import logging
import sys
import threading
from typing import Any

from payment_sandbox.kernel.masking import mask

log = logging.getLogger("payment_sandbox")


class MaskedFormatter(logging.Formatter):
    """A line of text, with the traceback below it."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The text of a record."""
        return mask(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object in one line, also of a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        shown = {
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask(record.getMessage()),
        }
        if record.exc_info:
            shown["traceback"] = mask(self.formatException(record.exc_info))
        return json.dumps(shown)


def set_up(log_format: str) -> None:
    """Log to standard error, and log what nobody has caught."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else MaskedFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)
    sys.excepthook = _on_uncaught
    threading.excepthook = lambda failed: _on_uncaught(*failed[:3])


def _on_uncaught(*failed: Any) -> None:
    if not issubclass(failed[0], (KeyboardInterrupt, SystemExit)):
        log.critical("an error was not expected", exc_info=failed)
