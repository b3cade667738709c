"""The grammar fuzzer: sends all cases of the grammar to a server with a bystander, and checks the answers."""

import os
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import perf_counter
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tests.attack import Report
from tests.attack.answers import error_problem
from tests.attack.client import Case, Client, Ending, Transcript
from tests.attack.grammar import PRODUCTIONS, REFUSALS, Production, Target
from tests.attack.probe import probing
from tests.attack.server_process import Project, ServerProcess, run_server, shows

CLIENT_NICENESS: Final = 10  # clients must not take processor time from the bystander
WARM_UP_ORDERS: Final = 50
COUNTED_SECONDS: Final = 20
RESET_SECONDS: Final = 0.02  # until the server has finished the requests of a reset connection
KEYLESS_STEP: Final = 3  # the short form sends every third case without a key
SLOW_CASE_SECONDS: Final = 2.0
MEMORY_MIB_MAX: Final = 32  # above the memory at rest, after some productions
MEMORY_MIB_MAX_SHORT: Final = 80  # after all productions
PEAK_MIB_MAX: Final = 96  # above the memory at rest, during a case
MEMORY_SECONDS: Final = 5.0
PROBLEMS_MAX: Final = 12  # of one production; further ones add no information
WITH_STATE_FILE: Final = ("cuts", "pipelines")  # productions that a state file could affect
WITHIN_TLS: Final = ("bodies",)


# Checks


def problems_of(case: Case, transcript: Transcript) -> Iterator[str]:
    """Yield the problems of the answers that a client has read."""
    yield from transcript.problems
    expected = case.expected
    if case.ending is Ending.RESETS:
        return
    if len(transcript.answers) > len(expected):
        yield f"{len(transcript.answers)} answers to {len(expected)} requests"
    for number, (each, answer) in enumerate(zip(expected, transcript.answers, strict=False)):
        is_refusal = answer.status in REFUSALS and number == len(transcript.answers) - 1
        if answer.status not in each.statuses and not (is_refusal and not case.is_certain):
            yield f"answer {number} is {answer.status}, but should be one of {sorted(each.statuses)}: {answer.body[:200]!r}"
        problem = error_problem(answer)
        if problem is not None:
            yield problem
        minimum, maximum = each.interims
        if not minimum <= transcript.interims[number] <= maximum:
            yield f"request {number} got {transcript.interims[number]} times 100 Continue; at least {minimum}, at most {maximum}"
    if len(transcript.answers) < len(expected):
        yield from _missing_answer_problems(case, transcript)


def _missing_answer_problems(case: Case, transcript: Transcript) -> Iterator[str]:
    """Yield the problems of a connection that ended before all requests were answered."""
    number = len(transcript.answers)
    if transcript.interims[number] > case.expected[number].interims[1]:
        yield f"100 Continue before {sorted(case.expected[number].statuses)}"
    announces_close = bool(transcript.answers) and transcript.answers[-1].closes
    if case.is_certain and not announces_close:
        ending = "a reset" if transcript.is_reset else "a close without notice"
        yield f"{number} answers to {len(case.expected)} requests, then {ending}"


def key_problems(transcript: Transcript, key: str) -> Iterator[str]:
    """Yield a problem if an answer contains the key."""
    if any(shows(answer.body.decode("latin-1"), [key]) for answer in transcript.answers):
        yield "an answer contains the key"


def order_problems(case: Case, acknowledged: int, created: int, late: int = 0) -> Iterator[str]:
    """Yield a wrong number of created orders; ``late`` ones may come from an earlier, reset connection."""
    if case.ending is Ending.RESETS:  # complete requests may be executed or not
        if created > case.creations + late:
            yield f"{created} orders were created, but at most {case.creations} were expected"
    elif not acknowledged <= created <= acknowledged + late:
        yield f"{created} orders were created, but {acknowledged} were acknowledged"


def peak_problems(peak_mib: float) -> Iterator[str]:
    """Yield a problem if a case took too much memory above that at rest."""
    if peak_mib > PEAK_MIB_MAX:
        yield f"{peak_mib:.0f} MiB of memory at the peak, above the limit of {PEAK_MIB_MAX}"


# The server's memory


class Memory:
    """The memory of a process, and its peak since the previous reading."""

    def __init__(self, pid: int) -> None:
        self._process = Path("/proc") / str(pid)

    def now_mib(self) -> float:
        """Return the current memory."""
        return self._mib("VmRSS")

    def peak_mib(self) -> float:
        """Return the peak since the previous call."""
        peak = self._mib("VmHWM")
        (self._process / "clear_refs").write_text("5")
        return peak

    def _mib(self, field: str) -> float:
        lines = (self._process / "status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def limit_memory(
    report: Report,
    name: str,
    now_mib: Callable[[], float],
    before_mib: float,
    seconds: float = MEMORY_SECONDS,
) -> None:
    """Limit the memory that is still in use a while after some productions."""
    start_seconds = perf_counter()
    maximum = MEMORY_MIB_MAX if report.size.strict else MEMORY_MIB_MAX_SHORT
    while (more := now_mib() - before_mib) > maximum and perf_counter() - start_seconds < seconds:
        Event().wait(seconds / 50)
    report.limit(f"{name}: memory afterwards, above that before", more, maximum, "MiB")


# The run


class Fuzzer:
    """Sends cases to one server, and reports problems."""

    def __init__(
        self, report: Report, server: ServerProcess, prefix: str, tls: ssl.SSLContext | None = None
    ) -> None:
        parts = urlsplit(server.url)
        self._report = report
        self._address = (str(parts.hostname), int(parts.port or 0))
        self._server = server._replace(url=f"http://{parts.netloc}")  # plain HTTP also with TLS
        self._memory = Memory(server.pid)
        self._prefix = prefix
        self._tls = tls
        self._late_orders = 0  # that the server may still create for the previous, reset connection
        self._last_name = ""

    def run(self, name: str, productions: Mapping[str, Production]) -> None:
        """Send all cases of some productions beside one bystander, and check the memory afterwards."""
        report, name = self._report, f"{self._prefix}{name}"
        _warm_up(self._server)
        at_rest = self._memory.now_mib()
        with (
            probing(self._server, report, name),
            ThreadPoolExecutor(1, initializer=os.nice, initargs=(CLIENT_NICENESS,)) as own,
        ):
            own.submit(self._run_productions, productions).result()
        limit_memory(report, name, self._memory.now_mib, at_rest)

    def _run_productions(self, productions: Mapping[str, Production]) -> None:
        try:
            for name, production in productions.items():
                for is_keyed in (True, False):
                    self._run_production(name, production, is_keyed)
        except OSError as error:
            expectation = f"{self._prefix}{self._last_name}: the server keeps answering"
            self._report.expect(expectation, False, repr(error))

    def _run_production(self, name: str, production: Production, is_keyed: bool) -> None:
        """Send the cases of one production with a new project; an OSError ends the run."""
        before = len(self._report.problems)
        with self._server.project(clock="frozen") as project:
            host = f"{self._address[0]}:{self._address[1]}"
            target = Target(host, self._report.size, project.key if is_keyed else None)
            step = 1 if is_keyed or self._report.size.strict else KEYLESS_STEP
            for each in islice(production(target), 0, None, step):
                self._last_name = f"{name}: {each.name}{'' if is_keyed else ', without a key'}"
                self._run_case(each._replace(name=self._last_name), project)
                if len(self._report.problems) - before > PROBLEMS_MAX:
                    self._report.note(f"{name}: further cases are skipped", "")
                    break
            project.expect("DELETE", "/control/project/", timeout=COUNTED_SECONDS)

    def _run_case(self, case: Case, project: Project) -> None:
        self._memory.peak_mib()
        begin, before_mib = perf_counter(), self._memory.now_mib()
        transcript = Client(self._address, case, self._tls).run()
        seconds = perf_counter() - begin
        if case.ending is Ending.RESETS:
            Event().wait(RESET_SECONDS)
        created = _count_orders(project)
        peak = peak_problems(self._memory.peak_mib() - before_mib)
        orders = order_problems(case, transcript.created, created, self._late_orders)
        self._late_orders = case.creations if case.ending is Ending.RESETS else 0
        answers = (*problems_of(case, transcript), *key_problems(transcript, project.key))
        for problem in (*answers, *orders, *peak):
            self._report.expect(f"{self._prefix}{case.name}", False, problem)
        if seconds > SLOW_CASE_SECONDS:
            self._report.note(f"{self._prefix}{case.name}: seconds", f"{seconds:.1f}")


def _warm_up(server: ServerProcess) -> None:
    """Load what the first use loads, and allocate the memory that creations need."""
    with server.project(clock="frozen") as project:
        for _ in range(WARM_UP_ORDERS):
            project.order()
        project.expect("DELETE", "/control/project/")


def _count_orders(project: Project) -> int:
    """Count the orders of a project, and delete them."""
    items = project.expect("GET", "/control/orders/", timeout=COUNTED_SECONDS)["items"]
    if items:
        project.expect("POST", "/control/reset/")
    return len(items)


def attack(report: Report) -> None:
    """Send all productions to servers in memory, with a state file and with TLS."""
    with TemporaryDirectory() as folder:
        environment = ("env", f"XDG_STATE_HOME={folder}")
        state = ("--state", str(Path(folder) / "state.db"))
        plans = (
            Plan("", PRODUCTIONS),
            Plan("with a state file, ", {name: PRODUCTIONS[name] for name in WITH_STATE_FILE}, state),
            Plan(
                "over TLS, ",
                {name: PRODUCTIONS[name] for name in WITHIN_TLS},
                ("--tls",),
                environment,
                unverified_context(),
            ),
        )
        for plan in plans:
            run_plan(report, plan)


def unverified_context() -> ssl.SSLContext:
    """Return a TLS context that accepts any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Plan(NamedTuple):
    """The productions that one server receives, and the options of the server."""

    prefix: str
    productions: Mapping[str, Production]
    options: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    tls: ssl.SSLContext | None = None


def run_plan(report: Report, plan: Plan) -> None:
    """Run each production on its own server in the full size, or all on one server in the short form."""
    rounds = [("all", plan.productions)]
    if report.size.strict:
        rounds = [(name, {name: each}) for name, each in plan.productions.items()]
    for name, productions in rounds:
        try:
            with run_server("--quiet", *plan.options, program=plan.program) as server:
                Fuzzer(report, server, plan.prefix, plan.tls).run(name, productions)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            expectation = "the server starts, stops, and logs no traceback"
            report.expect(f"{plan.prefix}{name}: {expectation}", False, repr(error))
