"""What the ControllerInstallations of a Seed say about it."""

from collections.abc import Iterable, Mapping

from gardener.conditions import EXTENSIONS_READY, HEALTHY, INSTALLED, PROGRESSING, VALID
from kube.conditions import Condition, conditions_of
from kube.objects import Object, condition, metadata, text

_GOOD = {VALID: "True", INSTALLED: "True", HEALTHY: "True", PROGRESSING: "False"}
"""In the order of weight: what is bad about any installation hides what is less so."""
_BAD = {
    VALID: ("NotAllExtensionsValid", "Some extensions are not valid"),
    INSTALLED: ("NotAllExtensionsInstalled", "Some extensions are not installed"),
    HEALTHY: ("NotAllExtensionsHealthy", "Some extensions are not healthy"),
    PROGRESSING: ("SomeExtensionsProgressing", "Some extensions are progressing"),
}
_READY = "All extensions installed into the seed cluster are ready and healthy."


def condition_of(installations: Iterable[Object]) -> Condition:
    groups: dict[str, dict[str, str]] = {kind: {} for kind in _GOOD}
    for installation in installations:
        for kind, message in _bad(installation).items():
            groups[kind][text(metadata(installation).get("name"))] = message
    for kind, found in groups.items():
        if found:
            reason, said = _BAD[kind]
            return Condition(EXTENSIONS_READY, "False", reason, f"{said}: {_listed(found)}")
    return Condition(EXTENSIONS_READY, "True", "AllExtensionsReady", _READY)


def _bad(installation: Object) -> dict[str, str]:
    """What is not as it should be: type of the condition, and what is said about it."""
    if not conditions_of(installation):
        return {INSTALLED: "extension was not yet installed"}
    found = {kind: present for kind in _GOOD if (present := condition(installation, kind)) is not None}
    bad = {kind: text(each.get("message")) for kind, each in found.items() if each.get("status") != _GOOD[kind]}
    if len(found) < len(_GOOD) and HEALTHY not in bad:
        bad[HEALTHY] = "not all required conditions found in ControllerInstallation"
    return bad


def _listed(messages: Mapping[str, str]) -> str:
    return f"map[{' '.join(f'{name}:{messages[name]}' for name in sorted(messages))}]"


def said(installation: Object) -> list[tuple[object, ...] | None]:
    """All that matters here."""
    found = (condition(installation, kind) for kind in _GOOD)
    return [None if each is None else (each.get("status"), each.get("reason"), each.get("message")) for each in found]
