"""The findings of a project, and its timeline as text for the report of a failed test."""

from collections.abc import Collection
from typing import Any

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import ends_at_caller
from payment_sandbox.judge import Finding, describe_mistakes

__all__ = ["Finding", "Review", "review"]

__tracebackhide__ = ends_at_caller


class Review(list[Finding]):
    """The findings of a review, empty for a correct integration."""

    def assert_clean(self, ignore: Collection[str] = ()) -> None:
        """Fail on open mistakes, with a full list of them; ``ignore`` lists rules to skip.

        Hints and corrected mistakes (by a retry, for example) never fail the assertion.

        Raises:
            AssertionError: the review found open mistakes.
        """
        problems = self.problems(ignore)
        if problems:
            raise AssertionError(problems)

    def problems(self, ignore: Collection[str] = ()) -> str:
        """Return all open mistakes as text; empty if there are none."""
        return describe_mistakes(self, ignore)


def review(client: SandboxClient) -> Review:
    """Review a project's history; return no findings for a correct integration."""
    items: list[Any] = list(client.reviewed()["items"])
    return Review(map(Finding.from_data, items))
