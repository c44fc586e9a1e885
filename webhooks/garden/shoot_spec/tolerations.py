"""Taints of Seeds that a Shoot tolerates, and the Seeds that its exposure class selects.

Reads `PROJECTS`, `EXPOSURE_CLASSES`.
"""

from collections.abc import Iterator

from gardener.api.garden import EXPOSURE_CLASSES
from kube.objects import Object, mapping, mappings, spec, string_map, text, texts
from kube.paths import mappings_at
from webhooks.garden.common import tolerations
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.tolerations import pair
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import project_of
from webhooks.rules.shapes import items

_PATH = "spec.tolerations"


def set_tolerations(write: Write) -> None:
    """Add the default tolerations of the project to a new Shoot, unless it has the same key."""
    project = project_of(write) if write.is_create else None
    defaults = mappings_at(spec(project), "tolerations", "defaults") if project is not None else []
    if not defaults:
        return
    own = mappings(write.spec.get("tolerations"))
    known = {text(each.get("key")) for each in own}
    if wanted := [dict(each) for each in defaults if text(each.get("key")) not in known]:
        write.own_spec()["tolerations"] = [*own, *wanted]


def set_exposure(write: Write) -> None:
    """Add the scheduling of the exposure class, unless it contradicts existing values."""
    scheduling = _scheduling(write)
    if not scheduling or write.is_deleting:
        return
    shoot_spec = write.own_spec()
    own = items(shoot_spec, "tolerations") if scheduling.get("tolerations") else []
    known = {text(each.get("key")) for each in own}
    own += [dict(each) for each in mappings(scheduling.get("tolerations")) if text(each.get("key")) not in known]
    if selector := mapping(scheduling.get("seedSelector")):
        shoot_spec["seedSelector"] = _united(mapping(shoot_spec.get("seedSelector")), selector)


def _scheduling(write: Write) -> Object:
    name = write.spec.get("exposureClassName")
    found = write.garden.need(EXPOSURE_CLASSES, name) if name else None
    return {} if found is None else mapping(found.get("scheduling"))


def _united(own: Object, other: Object) -> Object:
    united = dict(own)
    if labels := {**string_map(other.get("matchLabels")), **string_map(own.get("matchLabels"))}:
        united["matchLabels"] = labels
    expressions = mappings(own.get("matchExpressions"))
    expressions += [each for each in mappings(other.get("matchExpressions")) if each not in expressions]
    if expressions:
        united["matchExpressions"] = expressions
    if types := sorted({*texts(own.get("providerTypes")), *texts(other.get("providerTypes"))}):
        united["providerTypes"] = types
    return united


def exposure_conflicts(write: Write) -> Iterator[Finding]:
    """Tolerations and seed selector do not conflict with the exposure class. What is equal may come from it."""
    scheduling = _scheduling(write)
    if not scheduling:
        return
    wanted = {text(each.get("key")): pair(each) for each in mappings(scheduling.get("tolerations"))}
    for index, own in enumerate(mappings(write.spec.get("tolerations"))):
        key = text(own.get("key"))
        if key in wanted and wanted[key] != pair(own):
            path = f"{_PATH}[{index}]"
            yield Denial(f'toleration with key "{key}" conflicts with the ones of referenced exposureclass', path)
    labels = string_map(mapping(write.spec.get("seedSelector")).get("matchLabels"))
    for name, value in string_map(mapping(scheduling.get("seedSelector")).get("matchLabels")).items():
        if labels.get(name, value) != value:
            path = f"spec.seedSelector.matchLabels[{name}]"
            message = "matching labels of the seed selector conflicts with the ones of referenced exposureclass"
            yield Denial(f'{message}: "{name}"', path)


def toleration_errors(write: Write) -> Iterator[Finding]:
    """Rule for `checks`."""
    if own := write.spec.get("tolerations"):
        yield from tolerations.list_errors(_PATH, own)


def not_allowed(write: Write) -> Iterator[Finding]:
    """The project allows the tolerations."""
    wanted: list[Object] = write.spec.get("tolerations") or []
    project = project_of(write) if wanted else None
    if project is None:
        return
    allowed = mappings_at(spec(project), "tolerations", "whitelist")
    before = {pair(each) for each in mappings(write.old_spec.get("tolerations"))}
    for error in tolerations.not_allowed(_PATH, wanted, allowed):
        index = int(error.path.removeprefix(f"{_PATH}[").removesuffix("]"))
        if pair(wanted[index]) not in before or not write.is_update:
            yield Denial(f"error while validating tolerations against allowlist: {error}", error.path)
