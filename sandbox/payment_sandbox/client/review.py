"""The mistakes of an integration, as the sandbox finds them in its requests and webhooks."""

from collections.abc import Collection

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.operations.review import HINT, Finding

__all__ = ["Finding", "Review", "review"]


class Review(list[Finding]):
    """The findings of a review; a correct integration gets none."""

    def assert_clean(self, ignore: Collection[str] = ()) -> None:
        """Fail if there are mistakes, with all of them in full; ``ignore`` lists rules that do not count.

        Hints do not count either.

        Raises:
            AssertionError: there are mistakes.
        """
        problems = self.problems(ignore)
        if problems:
            raise AssertionError(problems)

    def problems(self, ignore: Collection[str] = ()) -> str:
        """All mistakes in full, as text; empty if there are none."""
        found = [each for each in self if each.kind != HINT and each.rule not in ignore]
        if not found:
            return ""
        count = "a mistake" if len(found) == 1 else f"{len(found)} mistakes"
        listed = "\n\n".join(map(str, found))
        return f"the review found {count} in the integration:\n\n{listed}"


def review(client: SandboxClient) -> Review:
    """Review a project's history; a correct integration gets no findings."""
    found = client.call("GET", "/control/review/")["items"]
    return Review(Finding(**{**item, "requests": tuple(item["requests"])}) for item in found)
