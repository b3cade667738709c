"""A recording: a conversation whose answers are known, with references for its identifiers."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from payment_sandbox_verify.answer import ServiceAnswer, value_at
from payment_sandbox_verify.player import BANKS, Observation, Played
from payment_sandbox_verify.steps import ApiCall, Control, ConversationScene, ConversationStep, Pause

CONDITIONAL_HEADERS: Final = ("if-match", "if-none-match")
IDENTIFIERS: Final = ("id", "vault_token")
ISSUERS_PATH: Final = "/v1/bank-redirect-nl/issuers/"
WORD: Final = re.compile(r"[\w.:-]+")
TAG: Final = re.compile(r'"[^"]*"')
ETAG: Final = "ETag"
NO_WEBHOOKS: Final = {"webhooks": [{"then": {"drop": True}}]}
"""The faults of a replay, because recorded orders have the shop's real addresses."""


class RecordingRefused(ValueError):
    """The file cannot be played; the message names the position."""


def read_document(file: Path) -> Any:
    """Read a JSON document.

    Raises:
        RecordingRefused: the file is malformed.
        OSError: the file cannot be read.
    """
    try:
        return json.loads(file.read_bytes())
    except UnicodeDecodeError as error:
        raise RecordingRefused(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise RecordingRefused(f"{place}: this is not JSON: {error.msg}") from None
    except RecursionError:
        raise RecordingRefused("the JSON is nested too deeply") from None


class Recording:
    """The steps of a recording, and what came back in each.

    A replay gets other identifiers and entity tags. Where a call names one that an earlier answer showed, its
    step refers to that place in the answer of the replay.
    """

    def __init__(self) -> None:
        self.steps: list[ConversationStep] = []
        self.observations: list[Observation] = []
        self.references: dict[str, str] = {}
        """The references by recorded identifier or entity tag."""
        self._now: datetime | None = None

    def add(self, step: ConversationStep, observation: Observation | None = None) -> None:
        """Add a step; ``observation`` is what came back, if that is known."""
        self.steps.append(step)
        self.observations.append(observation or Observation())

    def add_call(
        self, answer: ServiceAnswer, content: bytes, headers: Mapping[str, str], **facts: Any
    ) -> str:
        """Add a call with its exact body and headers and its answer; return the name of the answer."""
        name = self.next_name
        call = ApiCall(
            method=answer.method,
            path=self.refer(answer.path),
            content=self.refer(content.decode("latin-1")).encode("latin-1") or None,
            headers={key: self._refer_to_tags(key, value) for key, value in headers.items()},
            saves=name,
            **facts,
        )
        self.add(call, Observation(answer=answer))
        if answer.is_success:
            self.learn(name, answer.data)
            tag = TAG.search(answer.headers.get(ETAG, ""))
            self.references |= {tag[0]: f"<<{name}@{ETAG}>>"} if tag else {}
        return name

    @property
    def next_name(self) -> str:
        """A name for the answer of the next step."""
        return f"answer{len(self.steps)}"

    def learn(self, name: str, data: Any) -> None:
        """Add references for the identifiers in an answer; the first place of each counts."""
        for path, identifier in _identifiers(data, ""):
            if value_at(data, path) == identifier and ">" not in path:
                self.references.setdefault(identifier, f"<<{name}.{path}>>")

    def refer(self, text: str) -> str:
        """Return a text with references instead of identifiers."""
        return WORD.sub(lambda word: self.references.get(word[0], word[0]), text)

    def _refer_to_tags(self, header: str, value: str) -> str:
        if header.lower() not in CONDITIONAL_HEADERS:
            return value
        return TAG.sub(lambda tag: self.references.get(tag[0], tag[0]), value)

    def pause_until(self, at: datetime) -> None:
        """Add a pause until a recorded time, if it is later than the time of the step before."""
        if self._now is not None and at > self._now:
            self.add(Pause(seconds=(at - self._now).total_seconds()))
        self._now = at if self._now is None else max(at, self._now)

    def refer_to_bank(self, identifier: str) -> None:
        """Refer to the first bank of the sandbox's list instead of one that no recorded list has."""
        if identifier not in self.references:
            self.add(Control(method="GET", path=ISSUERS_PATH, saves=BANKS))
            self.references[identifier] = f"<<{BANKS}.[0].id>>"

    def played(self, name: str) -> Played:
        """Return the recording as a scene that a service has played."""
        return Played(ConversationScene(name, tuple(self.steps)), self.observations, 0.0)


def _identifiers(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of identifiers in an answer, each with the identifier."""
    if isinstance(value, dict):
        for key, inner in value.items():
            below = f"{path}.{key}".lstrip(".")
            if key in IDENTIFIERS and isinstance(inner, str) and WORD.fullmatch(inner):
                yield below, inner
            yield from _identifiers(inner, below)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _identifiers(inner, f"{path}[{index}]")
