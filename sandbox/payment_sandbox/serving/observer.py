"""What somebody who watches a whole server is told."""

from typing import Protocol

from payment_sandbox.projects.project import Project


class Observer(Protocol):
    """Watches a server, such as the log of ``serve``. It is called on any thread, and must return at once."""

    def opened(self, project: Project) -> None:
        """A project was created or loaded; from now on, its events can be watched."""
        ...

    def refused(self, method: str, path: str, status: int, why: str) -> None:
        """A request was refused before a project was found for it; no journal has it."""
        ...
