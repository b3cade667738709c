"""The command ``docs`` prints pages and sections without a server."""

from payment_sandbox.judge.lessons import LESSONS, where_to_read
from payment_sandbox.ui.docs.library import PAGE_NAMES, read_source
from payment_sandbox.ui.docs.sections import section


def test_every_place_that_messages_name_exists() -> None:
    """Each page and each section that a finding names can be printed."""
    for lesson in LESSONS.values():
        assert section(where_to_read(lesson.path).removeprefix("payment-sandbox docs ")).startswith("#")
    for name in PAGE_NAMES:
        assert section(name) == read_source(name).rstrip()
