"""Makes ``python -m payment_sandbox`` the same as ``payment-sandbox``."""

import gc
from typing import TYPE_CHECKING, NoReturn

from payment_sandbox.interrupts import exit_silently_on_interrupt
from payment_sandbox.loading import lazy, load_validators

if TYPE_CHECKING:
    from payment_sandbox.cli import main as command_line
else:
    command_line = lazy("payment_sandbox.cli.main")


def main() -> NoReturn:
    """Run a command; an interrupt during loading ends the process without a traceback."""
    exit_silently_on_interrupt()
    gc.disable()  # while modules load, because collection would only cost time; a command enables it
    load_validators()
    command_line.main()


if __name__ == "__main__":
    main()
