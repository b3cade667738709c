"""The sandbox for a test session: in this process, or at ``SANDBOX_URL``."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from payment_sandbox.client.client import SandboxError, ScenarioChoice, as_sent
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.scenarios.catalogue import SCENARIO_SUFFIXES, read_text
from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.testing.access import SandboxAccess
from payment_sandbox.testing.project_fixture import PaymentSandbox

DEFAULT_CLOCK: Final = "frozen"
REMOTE_PROJECT_LIFETIME: Final = "P1D"


def _without_file(scenario: ScenarioChoice) -> object:
    is_file = isinstance(scenario, Path) or (
        isinstance(scenario, str) and scenario.endswith(SCENARIO_SUFFIXES)
    )
    return parse_yaml(read_text(Path(scenario))).data if is_file else as_sent(scenario)  # type: ignore[arg-type]


class PaymentSandboxServer(SandboxAccess):
    """One sandbox for a whole test session: in this process, or at ``SANDBOX_URL``.

    ``PaymentSandboxServer(base_url=None, control_token=None, *, scenario_folders=(), settings=None)``
    starts a sandbox in this process, or uses the sandbox at ``base_url``. ``settings`` are the defaults for
    every project. Scenarios in ``scenario_folders`` can be used by name.
    """

    def project(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        scenario: ScenarioChoice | None = None,
        **more: Any,
    ) -> "PaymentSandbox":
        """Create a project with a frozen clock; ``close`` or leaving its context deletes it.

        The setting ``api_key`` sets the key of the project, for shops with a hard-coded key. A reset returns
        to the ``scenario``: a name, a file or a document.

        Raises:
            SandboxError: lists every invalid setting, or the mistakes in the scenario.
            ValueError: the key is in use, or the server runs in another process.
        """
        merged = {"clock": DEFAULT_CLOCK, **self._settings, **(settings or {}), **more}
        own_key = self._take_key(merged)
        if isinstance(merged["clock"], datetime):
            merged["clock"] = f"frozen@{merged['clock'].isoformat()}"
        if self.in_process is not None:
            self.retry_listening()
        if scenario is None:
            return self._create(merged, own_key)
        try:
            project = self._create({**merged, "scenario": _without_file(scenario)}, own_key)
        except (SandboxError, Invalid, TypeError, ValueError):
            project = self._create(merged, own_key)
        try:
            project.scenario(scenario)  # an invalid scenario is refused here, with its file and line
        except BaseException:
            project.close()
            raise
        return project

    def _create(self, settings: Mapping[str, object], own_key: str | None) -> "PaymentSandbox":
        if self.in_process is not None:
            with suppress(Invalid):  # the API call below then refuses the settings, with the usual error
                project, api_key = self.in_process.registry.create(settings, own_key)
                return PaymentSandbox(self, api_key, project.project_id)
        settings = {
            "expires_after": REMOTE_PROJECT_LIFETIME,
            **settings,
        }  # delete abandoned projects, because the test process may be killed
        created = self.client_for("").new_project(settings)
        return PaymentSandbox(self, created["api_key"], created["project_id"])

    def _take_key(self, settings: dict[str, Any]) -> str | None:
        """Remove ``api_key`` from the settings, check it, and return it."""
        key: str | None = settings.pop("api_key", None)
        if key is None:
            return None
        if self.in_process is None:
            raise ValueError(
                f"api_key={key!r}: for a server in another process, set the key in the serve --project file"
            )
        if not key or self.in_process.registry.find(key) is not None:
            raise ValueError(f"api_key={key!r}: another project uses this key")
        return key
