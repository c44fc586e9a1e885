"""Networks of a Shoot that conflict with those of a Seed, or are missing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from gardener.garden.networks import VPN_RANGES, overlap
from gardener.garden.shoots import workers
from kube.addresses import parse_cidr
from kube.objects import Object, mapping, spec, text, texts
from kube.paths import mapping_at
from kube.validation import ErrorKind, shown

_KINDS = {"nodes": "node", "services": "service", "pods": "pod"}
"""Networks of the Shoot, in the order in which they are checked."""
_OF_SEED = ("services", "pods", "nodes")

Networks = tuple[tuple[str, str], ...]
"""Field and CIDR."""


@dataclass(frozen=True, slots=True)
class SeedNetworks:
    own: Networks
    defaults: Networks
    """Networks of Shoots that specify none."""

    @classmethod
    def of(cls, seed: Object) -> "SeedNetworks":
        networks = mapping_at(spec(seed), "networks")
        return cls(_chosen(networks, _OF_SEED), _chosen(mapping(networks.get("shootDefaults")), ("pods", "services")))


@dataclass(frozen=True, slots=True)
class ShootNetworks:
    wanted: Networks
    actual: Networks
    """Networks from the status of a Shoot that has been on a Seed."""
    has_workers: bool

    @classmethod
    def of(cls, shoot: Object) -> "ShootNetworks | None":
        """Networks of a Shoot; None if it specifies none."""
        networking = spec(shoot).get("networking")
        if networking is None:
            return None
        status = mapping_at(shoot, "status", "networking")
        return cls(
            wanted=_chosen(mapping(networking), tuple(_KINDS)),
            actual=tuple((kind, cidr) for kind in _KINDS for cidr in texts(status.get(kind))),
            has_workers=bool(workers(spec(shoot))),
        )


def _chosen(networks: Mapping[str, object], fields: tuple[str, ...]) -> Networks:
    return tuple((field, text(networks.get(field))) for field in fields if networks.get(field))


@lru_cache(maxsize=4096)
def problems(shoot: ShootNetworks, seed: SeedNetworks) -> tuple[str, ...]:
    """Conflicts; cached, since most Shoots and Seeds have the same networks as others."""
    wanted = {**(dict(seed.defaults) if shoot.has_workers else _without_pods(seed.defaults)), **dict(shoot.wanted)}
    return (
        *_of_spec(wanted, shoot.has_workers, seed),
        *(clash for each in shoot.actual for clash in _clashes(*each, seed)),
    )


def _without_pods(networks: Networks) -> dict[str, str]:
    return {field: cidr for field, cidr in networks if field != "pods"}


def _of_spec(wanted: Mapping[str, str], has_workers: bool, seed: SeedNetworks) -> Iterator[str]:
    for field in _KINDS:
        if field in wanted:
            yield from _clashes(field, wanted[field], seed)
        elif field == "services" or (field == "pods" and has_workers):
            yield f"{ErrorKind.REQUIRED}: {field} is required"


def _clashes(field: str, cidr: str, seed: SeedNetworks) -> Iterator[str]:
    network = parse_cidr(cidr)
    taken = [(each, f"seed {_KINDS[of]} network") for of, each in seed.own]
    taken += [(each, f"default vpn network ({each})") for each in VPN_RANGES]
    for each, called in taken:
        other = parse_cidr(each)
        if network is not None and other is not None and overlap(network, other):
            yield f"{ErrorKind.INVALID}: {shown(cidr)}: shoot {_KINDS[field]} network intersects with {called}"
