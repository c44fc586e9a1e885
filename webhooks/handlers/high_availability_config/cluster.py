"""State of the cluster that affects a workload: its autoscaler, and the number of Nodes."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from config.resource_manager.webhooks import HighAvailabilityConfig
from gardener.api.kinds import HVPAS
from kube.objects import Object, integer, key, mapping, spec, text
from kube.resources import HORIZONTAL_POD_AUTOSCALERS, NODES
from kube.runtime.cache import View
from kube.runtime.client import Form
from webhooks.handlers.high_availability_config.rules import ClusterState
from webhooks.state import SharedListers


class Target(NamedTuple):
    """Object scaled by an autoscaler."""

    namespace: str
    api_version: str
    kind: str
    name: str


class Scaler(NamedTuple):
    target: Target | None
    max_replicas: int


def _target(obj: Object, reference: Any) -> Target | None:
    if not mapping(reference):
        return None
    api_version, kind, name = (text(reference.get(field)) for field in ("apiVersion", "kind", "name"))
    return Target(key(obj).namespace, api_version, kind, name)


def _hpa(obj: Object) -> Scaler:
    return Scaler(_target(obj, spec(obj).get("scaleTargetRef")), integer(spec(obj).get("maxReplicas")))


def _hvpa(obj: Object) -> Scaler:
    """Projection of an Hvpa, which scales horizontally only if it deploys an HPA."""
    hpa = mapping(spec(obj).get("hpa"))
    target = _target(obj, spec(obj).get("targetRef")) if hpa.get("deploy") is True else None
    return Scaler(target, integer(spec(mapping(hpa.get("template"))).get("maxReplicas")))


def _by_target(scaler: Scaler) -> Iterable[Target]:
    return (scaler.target,) if scaler.target else ()


def _exists(_: Object) -> bool:
    return True


_TARGET_INDEX = (("target", _by_target),)
HPAS_VIEW = View(HORIZONTAL_POD_AUTOSCALERS, _hpa, indexes=_TARGET_INDEX)
HVPAS_VIEW = View(HVPAS, _hvpa, indexes=_TARGET_INDEX)
NODES_VIEW = View(NODES, _exists, form=Form.METADATA)


class ClusterLister:
    """Reads the state from caches; the kind Hvpa may not exist."""

    def __init__(self, settings: HighAvailabilityConfig, state: SharedListers) -> None:
        self._state = state
        self._hpas = state.lister(HPAS_VIEW)
        self._hvpas = state.lister(HVPAS_VIEW, needed=False)
        self._nodes = state.lister(NODES_VIEW) if settings.behavior == "latest" else None

    def state_for(self, workload: Target) -> ClusterState:
        """Return the cluster's state for a workload.

        Raises:
            NotCovered: its namespace is not watched.
        """
        return ClusterState(max_replicas=self.max_replicas(workload), several_nodes=self._several_nodes())

    def max_replicas(self, target: Target) -> int | None:
        """Return the replicas up to which the target is scaled horizontally; None if it is not.

        Raises:
            NotCovered: its namespace is not watched.
        """
        self._state.demand_covered(HORIZONTAL_POD_AUTOSCALERS, target.namespace)
        for lister in (self._hpas, self._hvpas):
            for scaler in lister.store.values_by_index("target", target):
                return scaler.max_replicas
        return None

    def _several_nodes(self) -> bool:
        """Whether there are several Nodes; the seed's behavior assumes it."""
        return self._nodes is None or len(self._nodes.store) > 1
