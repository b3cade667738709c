"""Makes ``python -m payment_sandbox`` the same as ``payment-sandbox``."""

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Run a command; an interrupt while it loads ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from payment_sandbox.cli.main import main as run_command

    run_command()


if __name__ == "__main__":
    main()
