"""The sandbox of a test session: in this process, or the one at ``SANDBOX_URL``."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.testing.access import Access
from payment_sandbox.testing.project import PaymentSandbox

CLOCK: Final = "frozen"
EXPIRES_AFTER: Final = "P1D"


class PaymentSandboxServer(Access):
    """One sandbox for a whole test session: in this process, or the one at ``SANDBOX_URL``."""

    def __init__(
        self,
        base_url: str | None = None,
        control_token: str | None = None,
        *,
        scenario_folders: Sequence[Path] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Start a sandbox in this process, or use the one at ``base_url``.

        ``settings`` are those of every project that does not say otherwise. Scenarios in
        ``scenario_folders`` can be used by name.

        Raises:
            SandboxNotFound: no sandbox answers at ``base_url``.
            Invalid: a file in a scenario folder is wrong.
        """
        super().__init__(base_url, control_token, scenario_folders=scenario_folders)
        self._settings = dict(settings or {})

    def project(self, settings: Mapping[str, Any] | None = None, **more: Any) -> "PaymentSandbox":
        """Create a project with a frozen clock; it ends with ``close``, or as a context manager.

        With ``api_key`` among the settings it has this key, for shops that have one built in.

        Raises:
            SandboxError: lists every invalid setting.
            ValueError: another project has this key now, or the server runs in another process.
        """
        asked = {"clock": CLOCK, **self._settings, **(settings or {}), **more}
        own_key = self._own_key(asked)
        if isinstance(asked["clock"], datetime):
            asked["clock"] = f"frozen@{asked['clock'].isoformat()}"
        if self.in_process is not None:
            self.listen_again()
            with suppress(Invalid):  # the API call then refuses it, as a server in another process would
                project, api_key = self.in_process.registry.create(asked, own_key)
                return PaymentSandbox(self, api_key, project.project_id)
        asked = {"expires_after": EXPIRES_AFTER, **asked}  # the process of the tests may be killed
        made = self.client_for("").call("POST", "/control/projects/", asked)
        return PaymentSandbox(self, made["api_key"], made["project_id"])

    def _own_key(self, asked: dict[str, Any]) -> str | None:
        """The key that a project is asked to have."""
        key: str | None = asked.pop("api_key", None)
        if key is None:
            return None
        if self.in_process is None:
            raise ValueError(
                f"api_key={key!r}: a server in another process has it in a file: serve --project"
            )
        if not key or self.in_process.registry.find(key) is not None:
            raise ValueError(f"api_key={key!r}: another project has this key now")
        return key
