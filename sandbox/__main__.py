"""Makes ``python -m sandbox`` the same as ``payment-sandbox``."""

from sandbox.cli import main

if __name__ == "__main__":
    main()
