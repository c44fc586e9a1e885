"""PriorityClasses of all workloads in the seed, and pods that reserve capacity for further control planes.

Such a pod does nothing and has the lowest priority: a control plane preempts it at once, and the pending pod makes the
cluster add a node.
"""

from collections.abc import Iterator

from components.parts import in_seed, made
from components.seed_component import SeedComponent, SeedInputs
from components.workloads import deployment
from gardener import keys
from kube.objects import Object, mapping, mappings
from kube.paths import mapping_at
from kube.resources import PRIORITY_CLASSES

NAME = "system"
RESERVATION = "reserve-excess-capacity"
_RESERVED = f"gardener-{RESERVATION}"
_SYSTEM = range(900, 500, -100)
_CONTROL_PLANE = range(500, 0, -100)
_LOWEST = 999_998_000
_SECONDS_TO_END = 5
_REPLICAS = 2


def _reserved(seed: Object) -> list[Object]:
    """Capacity that a Seed reserves."""
    setting = mapping_at(seed, "spec", "settings", "excessCapacityReservation")
    return mappings(setting.get("configs")) if setting.get("enabled") is not False else []


def _objects(inputs: SeedInputs) -> list[Object]:
    return in_seed(NAME, [*_priority_classes(), *_reservations(inputs)])


def _priority_classes() -> Iterator[Object]:
    yield _priority_class(_RESERVED, -5, "PriorityClass for reserving excess capacity on a Seed cluster")
    for names, what in ((_SYSTEM, "Seed system components"), (_CONTROL_PLANE, "Shoot control plane components")):
        for number in names:
            yield _priority_class(f"gardener-system-{number}", _LOWEST + number, f"PriorityClass for {what}")


def _priority_class(name: str, value: int, description: str) -> Object:
    return made(PRIORITY_CLASSES, name, value=value, description=description)


def _reservations(inputs: SeedInputs) -> Iterator[Object]:
    for number, config in enumerate(_reserved(inputs.seed) if inputs.images.pause else ()):
        name = f"{RESERVATION}-{number}"
        # Separate labels, so that the Deployments do not adopt each other's pods.
        labels = {"app": "kubernetes", "role": name}
        resources = mapping(config.get("resources"))
        container: Object = {"name": "pause-container", "image": inputs.images.pause, "imagePullPolicy": "IfNotPresent"}
        pod: Object = {
            "containers": [{**container, "resources": {"requests": resources, "limits": resources}}],
            "priorityClassName": _RESERVED,
            "terminationGracePeriodSeconds": _SECONDS_TO_END,
            "automountServiceAccountToken": False,
        }
        pod |= {field: config[field] for field in ("nodeSelector", "tolerations") if config.get(field)}
        waiting = deployment(name, labels=labels, pod=pod, replicas=_REPLICAS)
        # Capacity may be missing for now, which does not make the seed unhealthy.
        waiting["metadata"]["annotations"] = {keys.SKIP_HEALTH_CHECK: "true"}
        yield waiting


COMPONENT = SeedComponent(name=NAME, title="system resources", objects=_objects)
