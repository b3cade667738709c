"""What ``serve`` prints while it runs: a line for each call, webhook attempt and status change."""

import json
from collections import deque
from collections.abc import Callable, Iterator
from threading import Condition, Thread
from typing import Any, Final
from weakref import ref

import click

from payment_sandbox.cli.printing import Write, put, to_standard_output
from payment_sandbox.cli.sentences import KINDS, Line, Refused, Sentences, refused_line
from payment_sandbox.kernel.masking import Masking, mask
from payment_sandbox.kernel.printing import printable
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.threads import start

WAITING_MAX: Final = 1000  # refusals that are not yet printed
TOGETHER_SECONDS: Final = 0.02
STOP_SECONDS: Final = 0.5
MASKING: Final = Masking()

Show = Callable[[Line], str]
"""How a line is printed."""


class _Watched:
    """A project, and the number of its newest event that was printed. It does not keep the project alive."""

    def __init__(self, project: Project, call: Callable[["_Watched"], None]) -> None:
        self.project = ref(project)
        self.number = project.events.number
        self.sentences = Sentences()
        self.is_called = False
        self._call = call

    def call(self) -> None:
        """There is news."""
        if not self.is_called:
            self.is_called = True
            self._call(self)


class Activity:
    """Watches all projects of a server, and prints what happens on a thread of its own.

    If nobody reads what is printed, that thread waits and misses events; no request waits for it.
    """

    def __init__(self, show: Show, *, write: Write = to_standard_output) -> None:
        self._show = show
        self._write = write
        self._changed = Condition()
        self._news: deque[_Watched] = deque()
        self._refused: deque[Refused] = deque(maxlen=WAITING_MAX)
        self._stopped = False
        self._thread = Thread(target=self._run, name="activity", daemon=True)

    def opened(self, project: Project) -> None:
        """Print what happens in a project from now on."""
        project.events.listen(_Watched(project, self._notice).call)

    def refused(self, method: str, path: str, status: int, why: str) -> None:
        """Print a request that belongs to no project."""
        with self._changed:
            self._refused.append(Refused(method, path, status, why))
            self._changed.notify()

    def start(self) -> None:
        """Begin to print."""
        start(self._thread)

    def stop(self) -> None:
        """Print what has happened until now, and end."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _notice(self, watched: _Watched) -> None:
        with self._changed:
            if len(self._news) >= WAITING_MAX:  # nobody reads; it is called again at its next event
                self._news.popleft().is_called = False
            if not self._stopped:
                self._news.append(watched)
            self._changed.notify()

    def _run(self) -> None:
        try:
            while not self._is_over():
                pass
        except OSError:  # whoever read it has gone
            with self._changed:
                self._stopped = True
                self._news.clear()

    def _is_over(self) -> bool:
        """Wait for news and print it; True once there is no more to come."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._news or self._refused)
            # a busy server prints many lines at once, which costs its requests less
            is_over = self._changed.wait_for(lambda: self._stopped, TOGETHER_SECONDS)
            refused, news = list(self._refused), list(self._news)
            self._refused.clear()
            self._news.clear()
        self._print(map(refused_line, refused))
        for watched in news:
            project = watched.project()
            if project is not None:
                self._print(self._of(watched, project))
        return is_over

    def _of(self, watched: _Watched, project: Project) -> Iterator[Line]:
        watched.is_called = False
        events = project.events
        first = events.first_kept()
        if first > watched.number + 1:
            missed = first - watched.number - 1
            yield Line("missed", f"{missed} events were too many to print", {"count": missed})
        newest = events.number
        for event in events.beyond(watched.number, KINDS):
            newest = max(newest, event.number)
            yield from watched.sentences.lines(event, project)
        watched.number = newest

    def _print(self, lines: Iterator[Line]) -> None:
        put("".join(f"{self._show(line)}\n" for line in lines), self._write)


def as_text(*, is_coloured: bool) -> Show:
    """Lines for people, in colour on a terminal."""

    def show(line: Line) -> str:
        text = printable(mask(line.text) if line.is_raw else line.text)
        return click.style(text, fg=line.colour) if is_coloured and line.colour else text

    return show


def as_json(line: Line) -> str:
    """A line as one JSON object."""
    shown: dict[str, Any] = {"level": "info", "message": line.text, "kind": line.kind, **line.data}
    return json.dumps(MASKING.record(shown) if line.is_raw else shown)
