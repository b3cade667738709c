"""The grammar fuzzer: says everything of the grammar to a server, while a bystander works, and judges the answers.

``python -m tests.attack.fuzzing trailers "chunks:of 1 for"`` tries some productions, or some of their cases, only.
``ATTACK_SEED`` replays the random part of a run.
"""

import os
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import perf_counter
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tests.attack import SHORT, Report, Size
from tests.attack.answers import error_problem
from tests.attack.bystander import CREATE, Calls, Made, calling, percentile
from tests.attack.composed import compositions
from tests.attack.grammar import REFUSALS, REQUESTS, Production, Target
from tests.attack.probe import RATIO_MAX, READ, REST_MS_MIN, WAIT_MS_MAX, WAIT_MS_MAX_BUSY
from tests.attack.records import records, secure_records, trusting, within_tls
from tests.attack.sequences import SEQUENCES
from tests.attack.served import Project, Served, served, shows
from tests.attack.talking import Case, Client, Ending, Talk

NICE: Final = 10  # for clients: the bystander must not wait for them, but for the server
REST_SECONDS: Final = 4.0
WARM_UP_ORDERS: Final = 50
COUNTED_SECONDS: Final = 20
RESET_SECONDS: Final = 0.02  # until a server that was cut off has done what it still does
KEYLESS_STEP: Final = 3  # the short form says one of so many cases without a key
NOTED_SECONDS: Final = 2.0
MEMORY_MIB_MAX: Final = 32  # more than at rest, after some productions
CALL_MIB: Final = (
    5 / 1024
)  # what each call of the bystander adds: it is freed, but not all of it is given back
MEMORY_MIB_MAX_SHORT: Final = 80  # after all of them
PEAK_MIB_MAX: Final = 96  # more than at rest, during a case
MEMORY_SECONDS: Final = 5.0
PROBLEMS_MAX: Final = 12  # of one production; what comes after them says no more
STORED: Final = ("half-closes", "ends", "pipelines", "compositions")  # what a state file could change


class Window(NamedTuple):
    """When a case was said."""

    name: str
    begin: float
    end: float


# What is right


def problems_of(case: Case, talk: Talk) -> Iterator[str]:
    """What is wrong with what a client has read."""
    yield from talk.problems
    asked = case.asked
    if case.ending is Ending.RESETS:
        return
    if len(talk.answers) > len(asked):
        yield f"{len(talk.answers)} answers to {len(asked)} requests"
    for number, (each, answer) in enumerate(zip(asked, talk.answers, strict=False)):
        is_refusal = answer.status in REFUSALS and number == len(talk.answers) - 1
        if answer.status not in each.statuses and not (is_refusal and not case.is_certain):
            yield f"answer {number} is {answer.status}, but should be one of {sorted(each.statuses)}: {answer.body[:200]!r}"
        problem = error_problem(answer, each)
        if problem is not None:
            yield problem
        least, most = each.interims
        if not least <= talk.interims[number] <= most:
            yield f"request {number} got {talk.interims[number]} times 100 Continue; at least {least}, at most {most}"
    if len(talk.answers) < len(asked):
        yield from _problems_of_silence(case, talk)


def _problems_of_silence(case: Case, talk: Talk) -> Iterator[str]:
    """What is wrong with a connection on which some requests are not answered."""
    number = len(talk.answers)
    if talk.interims[number] > case.asked[number].interims[1]:
        yield f"100 Continue before {sorted(case.asked[number].statuses)}"
    says_so = bool(talk.answers) and talk.answers[-1].closes
    if case.is_certain and not says_so:
        how = "with a reset" if talk.is_reset else "without a word"
        yield f"{number} answers to {len(case.asked)} requests, and the end {how}"


def twin_problems(talk: Talk, twin: Talk | None) -> Iterator[str]:
    """What is wrong with the answers to the same in another form."""
    if twin is not None and twin.statuses != talk.statuses:
        yield f"it gets {talk.statuses}, and the same in another form {twin.statuses}"


def key_problems(talk: Talk, key: str) -> Iterator[str]:
    """What is wrong with answers that repeat the key."""
    if any(shows(answer.body.decode("latin-1"), [key]) for answer in talk.answers):
        yield "an answer shows the key"


def order_problems(case: Case, known: int, made: int, late: int = 0) -> Iterator[str]:
    """What is wrong with the number of orders that there are afterwards; ``late`` ones may be of a broken connection."""
    if case.ending is Ending.RESETS:  # whole requests may be acted on, or not
        if made > case.creations + late:
            yield f"{made} orders were made, of at most {case.creations}"
    elif not known <= made <= known + late:
        yield f"{made} orders were made, and the client knows of {known}"


def peak_problems(peak_mib: float) -> Iterator[str]:
    """What is wrong with the memory that a case took, beyond that at rest."""
    if peak_mib > PEAK_MIB_MAX:
        yield f"it took {peak_mib:.0f} MiB of memory at its peak, but at most {PEAK_MIB_MAX}"


def report_waits(report: Report, group: str, calls: Calls, rest: Window, cases: Sequence[Window]) -> None:
    """Limit how long the bystander waited, and say during which case."""
    if not cases:
        return
    most = WAIT_MS_MAX if report.size.strict else WAIT_MS_MAX_BUSY
    alone, during = calls.between(rest.begin, rest.end), calls.between(cases[0].begin, cases[-1].end)
    for name, waits in _long_waits(during, cases, most).items():
        said = f"{group}: {name}: another project waits at most {most} ms"
        report.expect(said, False, f"{max(waits):.0f}, and {len(waits)} times too long")
    longest = max((made.took_ms for made in during), default=0.0)
    report.note(f"{group}: longest wait of another project, ms", f"{longest:.0f}")
    for kind in (READ, CREATE) if report.size.strict else ():
        at_rest, now = percentile(alone, kind), percentile(during, kind)
        name = f"{group}: {kind}: 99th percentile / alone ({now:.1f} / {at_rest:.1f} ms)"
        report.limit(name, now / max(REST_MS_MIN, at_rest), RATIO_MAX)
    failures = Counter(made.problem for made in calls.made if made.problem is not None)
    report.expect(f"{group}: another project is answered", not failures, dict(failures))


def _long_waits(
    calls: Sequence[Made], cases: Sequence[Window], most_ms: float
) -> Mapping[str, Sequence[float]]:
    """How long too long calls took, by the case that each was under way with for most of its time."""
    waits: dict[str, list[float]] = {}
    for made in calls:
        if made.took_ms > most_ms:
            case = max(cases, key=lambda case, made=made: _overlap_seconds(case, made))  # type: ignore[misc]
            waits.setdefault(case.name, []).append(made.took_ms)
    return waits


def _overlap_seconds(case: Window, made: Made) -> float:
    """For how long a call was under way during a case."""
    return min(case.end, made.at_seconds + made.took_ms / 1000) - max(case.begin, made.at_seconds)


# The server's memory


class Memory:
    """The memory of a process, and its peak since it was last asked."""

    def __init__(self, pid: int) -> None:
        self._process = Path("/proc") / str(pid)

    def now_mib(self) -> float:
        """What it takes."""
        return self._mib("VmRSS")

    def peak_mib(self) -> float:
        """The most it took since the last call."""
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
    """Limit what is still taken a while after some productions."""
    begun = perf_counter()
    most = MEMORY_MIB_MAX if report.size.strict else MEMORY_MIB_MAX_SHORT
    while (more := now_mib() - before_mib) > most and perf_counter() - begun < seconds:
        Event().wait(seconds / 50)
    report.limit(f"{name}: memory afterwards, more than before and for the bystander", more, most, "MiB")


# The run


class Fuzzer:
    """Says cases to one server, and reports what is wrong."""

    def __init__(
        self, report: Report, server: Served, prefix: str, tls: ssl.SSLContext | None = None
    ) -> None:
        parts = urlsplit(server.url)
        self._report = report
        self._address = (str(parts.hostname), int(parts.port or 0))
        self._server = server._replace(url=f"http://{parts.netloc}")  # also where https is spoken
        self._memory = Memory(server.pid)
        self._prefix = prefix
        self._tls = tls
        self._late = (
            0  # orders that a server may still make for a client that was the last one, and broke off
        )

    def run(self, name: str, productions: Mapping[str, Production]) -> None:
        """Say all cases of some productions beside one bystander, and look at the memory afterwards."""
        report, name = self._report, f"{self._prefix}{name}"
        _warm_up(self._server)
        begun, at_rest = perf_counter(), self._memory.now_mib()
        windows: list[Window] = []
        with (
            calling(self._server) as calls,
            ThreadPoolExecutor(1, initializer=os.nice, initargs=(NICE,)) as own,
        ):
            start = perf_counter()
            Event().wait(REST_SECONDS * max(report.size.share, 0.1))
            rest = Window("alone", start, perf_counter())
            own.submit(self._say_productions, productions, windows).result()
        report_waits(report, name, calls, rest, windows)
        limit_memory(report, name, self._memory.now_mib, at_rest + CALL_MIB * len(calls.made))
        report.note(f"{name}: cases, seconds", f"{len(windows)}, {perf_counter() - begun:.1f}")

    def _say_productions(self, productions: Mapping[str, Production], windows: list[Window]) -> None:
        try:
            for name, production in productions.items():
                for is_keyed in (True, False):
                    self._say_all(name, production, is_keyed, windows)
        except OSError as error:
            said = f"{self._prefix}{windows[-1].name if windows else name}: the server answers afterwards"
            self._report.expect(said, False, repr(error))

    def _say_all(self, name: str, production: Production, is_keyed: bool, windows: list[Window]) -> None:
        """Say the cases of one production to a project of its own; an OSError ends this."""
        before = len(self._report.problems)
        with self._server.project(clock="frozen") as project:
            host = f"{self._address[0]}:{self._address[1]}"
            target = Target(host, self._report.size, project.key if is_keyed else None)
            step = 1 if is_keyed or self._report.size.strict else KEYLESS_STEP
            for each in islice(production(target), 0, None, step):
                case = each._replace(name=f"{name}: {each.name}{'' if is_keyed else ', without a key'}")
                self._say(case, project, windows)
                if len(self._report.problems) - before > PROBLEMS_MAX:
                    self._report.note(f"{name}: more is not said", "")
                    break
            project.expect("DELETE", "/control/project/", timeout=COUNTED_SECONDS)

    def _say(self, case: Case, project: Project, windows: list[Window]) -> None:
        self._memory.peak_mib()
        begin, before_mib = perf_counter(), self._memory.now_mib()
        try:
            talk, twin = self._talk(case), None
            seconds = perf_counter() - begin
            if case.twin is not None:
                twin = self._talk(case._replace(sent=case.twin))
            if case.ending is Ending.RESETS:
                Event().wait(RESET_SECONDS)
            made = _count_orders(project) if case.is_http else 0
        finally:
            windows.append(Window(case.name, begin, perf_counter()))
        peak = peak_problems(self._memory.peak_mib() - before_mib)
        known = talk.created + (twin.created if twin is not None else 0)
        orders = order_problems(case, known, made, self._late)
        self._late = case.creations if case.ending is Ending.RESETS else 0
        forms = (*problems_of(case, talk), *twin_problems(talk, twin), *key_problems(talk, project.key))
        for problem in (*forms, *orders, *peak):
            self._report.expect(f"{self._prefix}{case.name}", False, problem)
        if seconds > NOTED_SECONDS:
            self._report.note(f"{self._prefix}{case.name}: seconds", f"{seconds:.1f}")

    def _talk(self, case: Case) -> Talk:
        return Client(self._address, case, self._tls).talk()


def _warm_up(server: Served) -> None:
    """Load what is loaded with its first use, and take the memory that creations take."""
    with server.project(clock="frozen") as project:
        for _ in range(WARM_UP_ORDERS):
            project.order()
        project.expect("DELETE", "/control/project/")


def _count_orders(project: Project) -> int:
    """How many orders there are now; they are gone afterwards."""
    items = project.expect("GET", "/control/orders/", timeout=COUNTED_SECONDS)["items"]
    if items:
        project.expect("POST", "/control/reset/")
    return len(items)


def attack(report: Report) -> None:
    """All productions, to a server in memory, one with a state file, and one with TLS."""
    fuzz(report)


def fuzz(report: Report, *names: str) -> None:
    """Say the cases of all productions, or of those that are named."""
    seed = report.seed()
    composed = {"compositions": lambda target: compositions(target, seed)}
    plain = {**REQUESTS, **SEQUENCES, "records": records, **composed}
    stored = {name: plain[name] for name in (STORED if report.size.strict else STORED[:1])}
    secure = {"secure records": secure_records}
    with TemporaryDirectory() as folder:
        home = ("env", f"XDG_STATE_HOME={folder}")
        plans = (
            Plan("", plain),
            Plan("with a state file, ", stored, ("--state", str(Path(folder) / "state.db"))),
            Plan("beside TLS, ", secure, ("--tls",), home),
            Plan("over TLS, ", {"within TLS": within_tls, **composed}, ("--tls",), home, trusting()),
        )
        for plan in plans:
            chosen = dict(_chosen(plan.productions, names))
            if chosen:
                carry_out(report, plan._replace(productions=chosen))
    if report.problems:
        report.expect("replay it", False, f"ATTACK_SEED={seed}")


def _chosen(productions: Mapping[str, Production], names: Sequence[str]) -> Iterator[tuple[str, Production]]:
    """The productions that are named, or all; ``trailers:without`` is those cases of one that have this word."""
    words = dict((name.partition(":")[::2]) for name in names)
    for name, production in productions.items():
        if not names:
            yield name, production
        elif name in words:
            yield name, partial(_with_word, production, words[name])


def _with_word(production: Production, word: str, target: Target) -> Iterator[Case]:
    return (case for case in production(target) if word in case.name)


class Plan(NamedTuple):
    """What is said to one server."""

    prefix: str
    productions: Mapping[str, Production]
    options: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    tls: ssl.SSLContext | None = None


def carry_out(report: Report, plan: Plan) -> None:
    """In the full size, each production has a server of its own; in the short form, they share one bystander."""
    rounds = [("all", plan.productions)]
    if report.size.strict:
        rounds = [(name, {name: each}) for name, each in plan.productions.items()]
    for name, productions in rounds:
        try:
            with served("--quiet", *plan.options, program=plan.program) as server:
                Fuzzer(report, server, plan.prefix, plan.tls).run(name, productions)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            said = "the server works, ends, and logs no traceback"
            report.expect(f"{plan.prefix}{name}: {said}", False, repr(error))


def main(arguments: list[str]) -> int:
    """Try the productions that are named."""
    report = Report(
        "grammar", SHORT if "--short" in arguments else Size(), lambda line: print(line, flush=True)
    )
    fuzz(report, *(name for name in arguments if name != "--short"))
    return len(report.problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
