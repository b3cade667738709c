"""The mistakes of an integration, as the sandbox finds them in its requests and webhooks."""

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.operations.review import Finding

__all__ = ["Finding", "review"]


def review(client: SandboxClient) -> list[Finding]:
    """Review a project's history; a correct integration gets no findings."""
    found = client.call("GET", "/control/review/")["items"]
    return [Finding(**{**item, "requests": tuple(item["requests"])}) for item in found]
