"""Makes ``python -m payment_sandbox`` the same as ``payment-sandbox``."""

import gc

from payment_sandbox.interrupts import exit_silently_on_interrupt
from payment_sandbox.loading import load_module, load_validators


def main() -> None:
    """Run a command; an interrupt during loading ends the process without a traceback."""
    exit_silently_on_interrupt()
    gc.disable()  # while modules load, because collection would only cost time; a command enables it
    load_validators()
    load_module("payment_sandbox.cli.main").main()


if __name__ == "__main__":
    main()
