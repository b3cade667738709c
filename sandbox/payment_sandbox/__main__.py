"""Makes ``python -m payment_sandbox`` the same as ``payment-sandbox``."""

from payment_sandbox.cli.main import main

if __name__ == "__main__":
    main()
