"""Prints how a replay went."""

import json
from pathlib import Path
from typing import Final

from payment_sandbox.cli.failing import fail
from payment_sandbox.cli.remote.calling import Call

SKIPPED_SHOWN_MAX: Final = 10


def replay_file(call: Call, file: str) -> int:
    """Play a file, and print the differences; return their number."""
    from payment_sandbox.client.replaying import EvidenceRefused
    from payment_sandbox.client.replaying import replay as play

    try:
        evidence = json.loads(Path(file).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        fail(f"{file} cannot be played: byte {error.start} is not UTF-8")
    except json.JSONDecodeError as error:
        fail(f"{file}:{error.lineno}:{error.colno}: cannot be played: this is not JSON: {error.msg}")
    try:
        outcome = play(call.sandbox, evidence)
    except EvidenceRefused as refused:
        fail(f"{file} cannot be played: {refused}")
    count = len(outcome.differences)
    address = f"{call.sandbox.base_url}/dashboard/{outcome.project_id}/orders/"
    told = f"{count} difference{'' if count == 1 else 's'}" if count else "all went the same way"
    lines = [f"not compared: {skipped}" for skipped in outcome.skipped[:SKIPPED_SHOWN_MAX]]
    lines += [f"different: {difference}" for difference in outcome.differences]
    lines.append(f"{outcome.steps} steps, {told}; see {address}")
    call.show({**outcome._asdict(), "address": address}, lambda _: "\n".join(lines))
    return count
