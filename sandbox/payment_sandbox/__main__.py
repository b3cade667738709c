"""Makes ``python -m payment_sandbox`` the same as ``payment-sandbox``."""

from typing import NoReturn

from payment_sandbox.interrupts import exit_silently_on_interrupt


def main() -> NoReturn:
    """Run a command; an interrupt during loading ends the process without a traceback."""
    exit_silently_on_interrupt()
    from payment_sandbox.cli.main import main as run_command

    run_command()


if __name__ == "__main__":
    main()
