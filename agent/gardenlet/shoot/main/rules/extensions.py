"""The Extension objects of a Shoot: requested and globally enabled ones, each at its stage of a flow."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from gardener.api.extensions import EXTENSIONS
from gardener.garden.shoots import workers
from kube.clock import parse_duration
from kube.objects import Key, Object, mapping, mappings, spec, text
from kube.paths import at, mappings_at

_USUAL_SECONDS = 180.0


class Stage(Enum):
    """Stage of a flow, as in the lifecycle of a ControllerRegistration."""

    BEFORE_API_SERVER = "BeforeKubeAPIServer"
    AFTER_API_SERVER = "AfterKubeAPIServer"
    AFTER_WORKER = "AfterWorker"


@dataclass(frozen=True, slots=True)
class Extension:
    """Attributes:
    type: also the name of its object.
    config: `providerConfig`, None if there is none.
    reconciled: stage of its deployment.
    deleted, migrated: stages of its removal.
    seconds: time limit of its reconciliation.
    """

    type: str
    config: Any
    reconciled: Stage
    deleted: Stage
    migrated: Stage
    seconds: float

    def manifest(self, namespace: str) -> Object:
        wanted = {"type": self.type} | ({} if self.config is None else {"providerConfig": self.config})
        return {**EXTENSIONS.type_meta, "metadata": {"name": self.type, "namespace": namespace}, "spec": wanted}

    def key(self, namespace: str) -> Key:
        return Key(namespace, self.type)


def wanted(shoot: Object, registrations: Iterable[Object]) -> dict[str, Extension]:
    """Extensions of a Shoot, by type."""
    offered = {text(each.get("type")): each for each in _offered(registrations)}
    requested = {text(each.get("type")): each for each in mappings(spec(shoot).get("extensions"))}
    of_all = (each for each in offered if _is_for_all(offered[each], shoot))
    types = dict.fromkeys([*requested, *of_all])
    return {
        each: _extension(each, requested.get(each, {}), offered.get(each, {}))
        for each in types
        if requested.get(each, {}).get("disabled") is not True
    }


def _offered(registrations: Iterable[Object]) -> Iterator[Object]:
    for registration in registrations:
        for each in mappings_at(registration, "spec", "resources"):
            if each.get("kind") == EXTENSIONS.kind:
                yield each


def _is_for_all(offered: Mapping[str, Any], shoot: Object) -> bool:
    is_suitable = bool(workers(spec(shoot))) or offered.get("workerlessSupported") is True
    return offered.get("globallyEnabled") is True and is_suitable


def _extension(of_type: str, requested: Object, offered: Object) -> Extension:
    lifecycle = mapping(offered.get("lifecycle"))
    return Extension(
        of_type,
        requested.get("providerConfig"),
        reconciled=_stage(lifecycle.get("reconcile"), Stage.AFTER_API_SERVER),
        deleted=_stage(lifecycle.get("delete"), Stage.BEFORE_API_SERVER),
        migrated=_stage(lifecycle.get("migrate"), Stage.BEFORE_API_SERVER),
        seconds=_seconds(at(offered, "reconcileTimeout")),
    )


def _stage(written: Any, usual: Stage) -> Stage:
    try:
        return Stage(written)
    except ValueError:
        return usual


def _seconds(written: Any) -> float:
    try:
        return parse_duration(text(written))
    except ValueError:
        return _USUAL_SECONDS
