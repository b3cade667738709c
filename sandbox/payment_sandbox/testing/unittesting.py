"""Support for suites without pytest: ``class TestShop(PaymentSandboxMixin, unittest.TestCase)``."""

import atexit
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from unittest import TestCase

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.reviews import default_mode, review, timeline_text
from payment_sandbox.testing.servers import PaymentSandboxServer
from payment_sandbox.testing.shops.submitting import current_observer

__unittest = True  # unittest and pytest leave this module's frames out, and show those of the test

if TYPE_CHECKING:
    Base = TestCase
else:
    Base = object


@cache
def shared_server() -> PaymentSandboxServer:
    """Return the shared server of all tests in this process, or the server at ``SANDBOX_URL``.

    Raises:
        SandboxNotFound: no sandbox answers at ``SANDBOX_URL``.
    """
    server = PaymentSandboxServer(
        os.environ.get("SANDBOX_URL") or None, os.environ.get("SANDBOX_CONTROL_TOKEN") or None
    )
    atexit.register(server.stop)
    return server


class MarkerOptions(NamedTuple):
    """The settings, scenario and intercepted URLs from pytest's markers and options."""

    settings: dict[str, Any]
    scenario: Any  # None means the scenario of the class
    urls: list[tuple[str, str | None]]
    report: Callable[[str], None] | None = None


class PaymentSandboxMixin(Base):
    """Adds ``self.payment_sandbox`` to each test: a new project with a frozen clock.

    The mixin works with ``unittest``, Django's test runner and pytest. If a test fails, its traceback ends
    with the project's timeline.
    """

    payment_settings: ClassVar[Mapping[str, Any]] = {}
    """The settings of each test's project."""

    payment_scenario: ClassVar[str | Path | Mapping[str, Any] | None] = None
    """The initial scenario of each test's project."""

    payment_intercept: ClassVar[Sequence[str] | str] = ()
    """Addresses to intercept; see ``PaymentSandbox.intercept``."""

    payment_review: ClassVar[str | None] = None
    """The reaction to mistakes in a passing test: ``off``, ``warn`` or ``error``.

    By default, ``PAYMENT_SANDBOX_REVIEW`` decides; without it, the review warns.
    """

    payment_review_expect: ClassVar[Collection[str]] = ()
    """Rules broken on purpose, such as ``("CAP-04",)``."""

    _payment_sandbox: PaymentSandbox | None = None
    _marker_options: MarkerOptions | None = None  # set by the pytest plugin
    _is_failed = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a class with TestCase ahead of this mixin, because its failures would lack the timeline."""
        super().__init_subclass__(**options)
        if issubclass(cls, TestCase) and cls.__mro__.index(TestCase) < cls.__mro__.index(PaymentSandboxMixin):
            raise TypeError(f"class {cls.__name__}: list PaymentSandboxMixin before TestCase")

    @property
    def payment_sandbox(self) -> PaymentSandbox:
        """This test's project, created on first use, and deleted after the test."""
        if self._payment_sandbox is None:
            options = self._marker_options
            settings = options.settings if options is not None else {}
            scenario = self.payment_scenario
            if options is not None and options.scenario is not None:
                scenario = options.scenario
            project = shared_server().project({**self.payment_settings, **settings}, scenario=scenario)
            self.addCleanup(self._close_payment_sandbox)
            self._payment_sandbox = project
            if options is not None and options.report is not None:
                project.server.report = options.report
            urls = self.payment_intercept
            project.intercept(*([urls] if isinstance(urls, str) else urls))
            for url, key in options.urls if options is not None else ():
                project.intercept(url, key=key)
            observer = current_observer()
            if observer is not None:
                observer.attach(project, lambda name: getattr(self, name, None))
        return self._payment_sandbox

    def _callSetUp(self) -> None:  # noqa: N802 (unittest's name; there is no public hook for failures)
        if self.payment_intercept or (
            self._marker_options is not None and self._marker_options.urls
        ):  # even if the test does not use the project, no request may leave the process
            _ = self.payment_sandbox
        with self._timeline_on_failure():
            super()._callSetUp()  # type: ignore[misc]

    def _callTestMethod(self, method: Any) -> Any:  # noqa: N802 (unittest's name)
        observer = current_observer()  # it judges a rehearsal run before the test case is torn down
        with self._timeline_on_failure():
            try:
                result = super()._callTestMethod(method)  # type: ignore[misc]
            except BaseException as failure:
                if observer is not None and not isinstance(failure, KeyboardInterrupt):
                    observer.end(failure)
                raise
            if observer is not None:
                observer.end(None)
            return result

    @contextmanager
    def subTest(self, msg: Any = None, **params: Any) -> Iterator[None]:  # noqa: N802 (unittest's name)
        """Run a subtest, and add the project's timeline to its failures."""
        with super().subTest(msg, **params), self._timeline_on_failure():
            yield

    @contextmanager
    def _timeline_on_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._is_failed = True
            text = timeline_text(self._payment_sandbox, error) if self._payment_sandbox is not None else ""
            if text:
                error.add_note(f"payment sandbox:\n{text}")
            raise

    def _close_payment_sandbox(self) -> None:
        project, self._payment_sandbox = self._payment_sandbox, None
        if project is None:
            return
        try:
            if not self._is_failed and current_observer() is None:  # which has judged the run
                mode = self.payment_review or default_mode()
                review(project, mode, self.id(), self.payment_review_expect)
        finally:
            project.close()
