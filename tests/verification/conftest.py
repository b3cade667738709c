"""The command line in this process."""

from tests.cli.conftest import run_here

__all__ = ["run_here"]
