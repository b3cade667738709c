"""For suites without pytest: ``class TestShop(PaymentSandboxMixin, unittest.TestCase)``."""

import atexit
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from unittest import TestCase

from payment_sandbox.testing.project import PaymentSandbox
from payment_sandbox.testing.rehearsed_test import current_test
from payment_sandbox.testing.reviews import review, review_text
from payment_sandbox.testing.servers import PaymentSandboxServer

if TYPE_CHECKING:
    Base = TestCase
else:
    Base = object


@cache
def shared_server() -> PaymentSandboxServer:
    """The server that all tests of this process share: in it, or the one at ``SANDBOX_URL``.

    Raises:
        SandboxNotFound: no sandbox answers there.
    """
    server = PaymentSandboxServer(
        os.environ.get("SANDBOX_URL") or None, os.environ.get("SANDBOX_CONTROL_TOKEN") or None
    )
    atexit.register(server.stop)
    return server


class OfMarkers(NamedTuple):
    """What the markers and options of pytest ask of a test's project."""

    settings: dict[str, Any]
    scenario: Any  # None: that of the class
    urls: list[tuple[str, str | None]]


class PaymentSandboxMixin(Base):
    """Gives each test ``self.payment_sandbox``, a fresh project with a frozen clock.

    Works with ``unittest``, Django's test runner and pytest. If a test fails, its traceback ends with the
    project's timeline.
    """

    payment_settings: ClassVar[Mapping[str, Any]] = {}
    """The settings of each test's project."""

    payment_scenario: ClassVar[str | Path | Mapping[str, Any] | None] = None
    """The scenario that each test's project starts with."""

    payment_intercept: ClassVar[Sequence[str] | str] = ()
    """Addresses whose requests come to the sandbox; see ``PaymentSandbox.intercept``."""

    payment_review: ClassVar[str] = "off"
    """What to do about mistakes in a test that passed: ``off``, ``warn`` or ``error``."""

    payment_review_expect: ClassVar[Collection[str]] = ()
    """The rules that the test breaks on purpose, such as ``("CAP-04",)``."""

    _payment_sandbox: PaymentSandbox | None = None
    _asked: OfMarkers | None = None  # by markers and options of pytest
    _is_failed = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a class whose other bases come first: it would lose what failures tell."""
        super().__init_subclass__(**options)
        if issubclass(cls, TestCase) and cls.__mro__.index(TestCase) < cls.__mro__.index(PaymentSandboxMixin):
            raise TypeError(f"class {cls.__name__}: name PaymentSandboxMixin before TestCase")

    @property
    def payment_sandbox(self) -> PaymentSandbox:
        """This test's project, created when it is first used, and deleted after the test."""
        if self._payment_sandbox is None:
            asked = self._asked
            settings = asked.settings if asked is not None else {}
            made = shared_server().project({**self.payment_settings, **settings})
            self.addCleanup(self._close_payment_sandbox)
            self._payment_sandbox = made
            self._set_up(made)
            run = current_test()
            if run is not None:
                run.attach(made, lambda name: getattr(self, name, None))
        return self._payment_sandbox

    def _set_up(self, made: PaymentSandbox) -> None:
        """Give a project what the class asks for, and what markers and options of pytest do."""
        asked = self._asked
        scenario = self.payment_scenario
        if asked is not None and asked.scenario is not None:
            scenario = asked.scenario
        if scenario is not None:
            made.scenario(scenario)
        urls = self.payment_intercept
        made.intercept(*([urls] if isinstance(urls, str) else urls))
        for url, key in asked.urls if asked is not None else ():
            made.intercept(url, key=key)

    def _callSetUp(self) -> None:  # noqa: N802 (unittest's name; there is no public hook for failures)
        if self.payment_intercept or (
            self._asked is not None and self._asked.urls
        ):  # or the requests of a test that does not use its project would go out
            _ = self.payment_sandbox
        with self._noting():
            super()._callSetUp()  # type: ignore[misc]

    def _callTestMethod(self, method: Any) -> Any:  # noqa: N802 (unittest's name)
        with self._noting():
            try:
                result = super()._callTestMethod(method)  # type: ignore[misc]
            except BaseException as failure:
                _judge(failure)
                raise
            _judge(None)
            return result

    @contextmanager
    def subTest(self, msg: Any = None, **params: Any) -> Iterator[None]:  # noqa: N802 (unittest's name)
        """Run a part of a test; its failure gets the project's timeline, too."""
        with super().subTest(msg, **params), self._noting():
            yield

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Add the project's timeline to a failure."""
        try:
            yield
        except Exception as error:
            self._is_failed = True
            if self._payment_sandbox is not None:
                error.add_note(f"payment sandbox:\n{review_text(self._payment_sandbox)}")
            raise

    def _close_payment_sandbox(self) -> None:
        project, self._payment_sandbox = self._payment_sandbox, None
        if project is None:
            return
        try:
            if not self._is_failed:
                review(project, self.payment_review, self.id(), self.payment_review_expect)
        finally:
            project.close()


def _judge(failure: BaseException | None) -> None:
    """Judge the run of a rehearsal before the test case is torn down."""
    run = current_test()
    if run is not None and not isinstance(failure, KeyboardInterrupt):
        run.ended(failure)
