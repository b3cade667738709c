"""Finds by trial the settings with which a sandbox answers as a service does."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.forms import Choice, Flag
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.projects.settings import FEATURES, SETTINGS_FORM, Settings
from payment_sandbox.web.error_bodies import MERCHANT_PATHS
from payment_sandbox_verify.answer import MISSING, REFUSED_STATUSES, UNAUTHORIZED, CannotTell
from payment_sandbox_verify.comparing import compare_scene
from payment_sandbox_verify.differences import AnswerDifference, by_rule, unique
from payment_sandbox_verify.normalising import anonymize
from payment_sandbox_verify.player import Observation, Played
from payment_sandbox_verify.samples import card, sale
from payment_sandbox_verify.service import Service
from payment_sandbox_verify.steps import ORDERS_PATH
from payment_sandbox_verify.verifying import reference_project, reference_server

CURRENCIES_PATH: Final = "/v1/merchants/self/projects/self/currencies/"
FEATURE_DETAILS: Final = {
    "one_click_enabled": ("one_click_type", "first"),
    "recurring_enabled": ("recurring_type", "first"),
    "dynamic_descriptor_enabled": ("dynamic_descriptor", "VERIFY"),
}
NOT_TRIED: Final = ("mode", *FEATURES)  # read from the service before the conversation
ERRORS: Final = "errors"
HIDING_WEIGHT: Final = 10
VALIDATION_ERROR: Final = "ValidationError"


def account_settings(service: Service, *, live: bool) -> dict[str, Any]:
    """Read the mode, the methods and the features of an account, which are no differences.

    What cannot be read keeps its default.
    """
    settings: dict[str, Any] = {"mode": "live" if live else "test"}
    try:
        methods = service.call("GET", CURRENCIES_PATH).at("payment_methods")
        if isinstance(methods, dict):
            enabled = [name for name in METHOD_NAMES if name in methods]
            is_restricted = 0 < len(enabled) < len(METHOD_NAMES)
            settings |= {"payment_methods": enabled} if is_restricted else {}
        for feature, (name, value) in FEATURE_DETAILS.items():
            answer = service.call("POST", ORDERS_PATH, sale(card(**{name: value})))
            if answer.status in REFUSED_STATUSES and name in str(answer.data):
                settings[feature] = False
    except CannotTell:
        pass
    return settings


def find_settings(
    played: Sequence[Played], differences: Sequence[AnswerDifference], base: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Sequence[AnswerDifference]]:
    """Add each setting, and then each override of errors, with which fewer or lesser differences remain.

    Return the settings, and the differences that remain between the service and a sandbox with them.

    Each trial plays one scene for each kind of difference. In the end, a sandbox with the settings found
    plays all scenes; settings with which further rules differ are no copy.
    """
    kinds = {each.kind: each.scene for each in reversed(differences)}
    shown = [each for each in played if each.scene.name in set(kinds.values())]
    settings: dict[str, Any] = {}
    with reference_server() as server:
        play = partial(_play_again, server, base)
        weight = _weight(_compare(shown, play(shown, settings)))
        for candidates in (_single_settings, _error_settings, _error_settings):  # one error may hide another
            for candidate in list(candidates(shown, play(shown, settings))):
                together = _merge_settings(settings, candidate)
                trial = _weight(_compare(shown, play(shown, together))) if together != settings else weight
                settings, weight = (together, trial) if trial < weight else (settings, weight)
        remaining = _compare(played, play(played, settings)) if settings else differences
    is_copy = by_rule(remaining).keys() <= by_rule(differences).keys()
    return (settings, remaining) if is_copy else ({}, differences)


def _play_again(
    server: SandboxClient, base: Mapping[str, Any], plays: Sequence[Played], settings: Mapping[str, Any]
) -> list[Played]:
    """Play the same scenes on a new sandbox with these settings."""
    with reference_project(server, {**base, **settings}) as reference:
        reference.service.is_live = base["mode"] == "live"
        return [reference.play(each.scene) for each in plays]


def _compare(theirs: Sequence[Played], ours: Sequence[Played]) -> list[AnswerDifference]:
    return [each for scene in map(compare_scene, theirs, ours) for each in scene.differences]


def _weight(differences: Sequence[AnswerDifference]) -> int:
    """Return the weight of what remains; a different outcome or status hides what follows from it."""
    return sum(HIDING_WEIGHT if each.is_decisive else 1 for each in unique(differences))


def _merge_settings(settings: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    errors = {**settings.get(ERRORS, {}), **more.get(ERRORS, {})}
    return {**settings, **more, **({ERRORS: errors} if errors else {})}


def _single_settings(*_plays: Sequence[Played]) -> Iterator[dict[str, Any]]:
    """Yield each other value of each setting that has a few."""
    defaults = Settings()
    for name, kind in SETTINGS_FORM.fields.items():
        values: Sequence[Any] = (True, False) if isinstance(kind, Flag) else ()
        values = kind.choices if isinstance(kind, Choice) else values
        if name not in NOT_TRIED:
            yield from ({name: value} for value in values if value != getattr(defaults, name))


# Refusals

RefusalPairs = Sequence[tuple[Observation, Observation]]


def _error_settings(theirs: Sequence[Played], ours: Sequence[Played]) -> Iterator[dict[str, Any]]:
    """Yield overrides of errors: the values common to each error type, then each rule's deviations."""
    pairs = list(_refusal_pairs(theirs, ours))
    for kind, group in _group(pairs, lambda each: str(each.answer.at("error.type"))).items():
        common = _common_values(group)
        if common:
            yield {ERRORS: {kind: common}}
        if kind == VALIDATION_ERROR:
            for rule, of_rule in _group(group, lambda each: next(iter(each.rules), "")).items():
                own = {
                    name: value
                    for name, value in _common_values(of_rule).items()
                    if common.get(name) != value
                }
                if rule and own:
                    yield {ERRORS: {rule: own}}


def _refusal_pairs(
    theirs: Sequence[Played], ours: Sequence[Played]
) -> Iterator[tuple[Observation, Observation]]:
    """Yield both servers' refusals of the same call, in pairs."""
    for one, other in zip(theirs, ours, strict=True):
        for pair in zip(one.observations, other.observations, strict=True):
            statuses = {each.answer.status for each in pair}
            is_refused = all(status in REFUSED_STATUSES for status in statuses - {UNAUTHORIZED})
            # no setting changes answers outside the API
            is_in_api = pair[0].answer.path.startswith(MERCHANT_PATHS)
            if is_refused and is_in_api and UNAUTHORIZED not in statuses:
                yield pair


def _group(
    pairs: RefusalPairs, name: Callable[[Observation], str]
) -> dict[str, list[tuple[Observation, Observation]]]:
    groups: dict[str, list[tuple[Observation, Observation]]] = {}
    for pair in pairs:
        groups.setdefault(name(pair[1]), []).append(pair)
    return groups


def _common_values(pairs: RefusalPairs) -> dict[str, Any]:
    """Return the values that all refusals by the service share, if the sandbox's refusals differ."""
    common = {}
    for name in ("status", "type", "value"):
        theirs = {repr(_value_of(one, name)): _value_of(one, name) for one, _ in pairs}
        ours = {repr(_value_of(other, name)) for _, other in pairs}
        value = next(iter(theirs.values()))
        is_plain = isinstance(value, int) or (isinstance(value, str) and anonymize(value) == value)
        if len(theirs) == 1 and set(theirs) != ours and is_plain:
            common[name] = value
    return common


def _value_of(observation: Observation, name: str) -> Any:
    answer = observation.answer
    value = answer.status if name == "status" else answer.at(f"error.{name}")
    return None if value is MISSING else value
