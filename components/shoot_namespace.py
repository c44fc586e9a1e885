"""The namespace of a Shoot in its seed, with labels for extensions, policies and webhooks.

Its zones are those in which its pods may run, computed in each flow: a zone that the Seed no longer has is removed, and
the zone of a volume is added again, since the volume's pod can't run elsewhere.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from components.control_plane import failure_tolerance
from components.parts import made
from gardener import keys
from gardener.garden.shoots import workers
from kube.objects import Object, annotations, spec, text
from kube.paths import at
from kube.resources import NAMESPACES

_ZONE = "zone"
_ZONES_IF_SPREAD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Parameters of the namespace.

    Attributes:
        name: the technical ID of the Shoot.
        zones: see `zones_of`.
        extensions: types of extensions that the Shoot needs.
    """

    name: str
    shoot: Object
    seed: Object
    zones: Sequence[str]
    extensions: Iterable[str] = ()


def manifest(values: Values) -> Object:
    shoot, seed = spec(values.shoot), spec(values.seed)
    seed_provider = text(at(seed, "provider", "type"))
    labels = {
        keys.ROLE: keys.ROLE_SHOOT,
        "seed.gardener.cloud/provider": seed_provider,
        "shoot.gardener.cloud/provider": text(at(shoot, "provider", "type")),
        "backup.gardener.cloud/provider": text(at(seed, "backup", "provider")) or seed_provider,
        "pod-security.kubernetes.io/enforce": "privileged",
        keys.HIGH_AVAILABILITY_CONSIDER: "true",
        **{f"extensions.gardener.cloud/{each}": "true" for each in sorted(values.extensions)},
    }
    if workers(shoot):
        labels["networking.shoot.gardener.cloud/provider"] = text(at(shoot, "networking", "type"))
    notes = {
        "shoot.gardener.cloud/uid": text(at(values.shoot, "status", "uid")),
        keys.HIGH_AVAILABILITY_FAILURE_TOLERANCE: failure_tolerance(values.shoot),
        keys.HIGH_AVAILABILITY_ZONES: ",".join(values.zones),
    }
    return made(NAMESPACES, values.name, labels=labels, annotations=notes)


def zones_of(
    shoot: Object,
    seed: Object,
    *,
    live: Object | None,
    volumes: Iterable[str],
    choose: Callable[[Sequence[str]], str],
) -> list[str]:
    """Zones in which its pods may run, sorted.

    Args:
        shoot: in the garden.
        seed: in the garden.
        live: the namespace; None if it does not exist yet.
        volumes: zones of the volumes in the namespace.
        choose: selects one of several.
    """
    of_seed = sorted(set(at(spec(seed), "provider", "zones") or ()))
    kept = (annotations(live).get(keys.HIGH_AVAILABILITY_ZONES) or "").split(",") if live else []
    zones = {*(zone for zone in kept if zone in of_seed), *volumes}
    wanted = _ZONES_IF_SPREAD if failure_tolerance(shoot) == _ZONE else 1
    while len(zones) < wanted and (free := [zone for zone in of_seed if zone not in zones]):
        zones.add(choose(free))
    return sorted(zones)
