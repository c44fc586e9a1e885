"""Objects of a garden with related ones, as far as the user may read them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain

from gardener.api.garden import (
    BACKUP_ENTRIES,
    CREDENTIALS_BINDINGS,
    MANAGED_SEEDS,
    PROJECTS,
    QUOTAS,
    SECRET_BINDINGS,
    SEEDS,
    SHOOTS,
)
from gardener.garden import lifetimes, profiles, scheduling, users
from gardener.garden.domains import NAMESPACE
from gardener.garden.scheduling.regions import PURPOSE, REGION_CONFIG
from gardener.garden.seeds import LEASE_NAMESPACE
from gardener.garden.shoots import responsible_seed, seeds_of
from kube.objects import Key, Object, key, labels, spec, text
from kube.paths import at
from kube.resources import CONFIG_MAPS, LEASES, NAMESPACES, ROLE_BINDINGS, Resource
from kubectl.garden.why import operation, other, programs, protected
from kubectl.garden.why import project as of_project
from kubectl.garden.why import seed as of_seed
from kubectl.garden.why import shoot as of_shoot
from kubectl.garden.why.finding import Finding, Users
from kubectl.reader import Reader

Explained = Iterable[Finding]


async def explained(reader: Reader, resource: Resource, own: Key, now: datetime) -> Explained:
    """All findings about an object. Raises UserError: it does not exist."""
    obj = await reader.demand(resource, own)
    leases = {name: await reader.glance(LEASES, each) for name, each in programs.LEASES.items()}
    needed = programs.needed_by(resource, obj)
    return chain(programs.findings(leases, now, needed=needed), await _explained(reader, resource, own, obj, now))


async def _explained(reader: Reader, resource: Resource, own: Key, obj: Object, now: datetime) -> Explained:
    if explain := _EXPLAINED.get(resource):
        return await explain(reader, obj, now)
    if resource not in protected.USERS:
        return await _other(reader, resource, obj, now)
    found = await _users(reader, resource, own)
    return protected.findings(resource, obj, found, is_complete=not reader.unread, now=now)


async def _users(reader: Reader, resource: Resource, own: Key) -> list[Users]:
    async def of(referring: protected.Referring) -> Users:
        namespace = own.namespace if referring.is_near else ""
        found = await reader.those(
            referring.resource, lambda each: own in referring.references(each), namespace=namespace
        )
        return Users(referring.resource, sorted(map(key, found)))

    return list(await asyncio.gather(*map(of, protected.USERS[resource])))


# --- Shoots


async def _shoot(reader: Reader, shoot: Object, now: datetime) -> Explained:
    own = key(shoot)
    profile, seed, managed, quotas = await asyncio.gather(
        profile_for(reader, shoot), _seed_of(reader, shoot), _managed_seed(reader, own), _quotas(reader, shoot)
    )
    decision = await _decision(reader, shoot, profile, now) if scheduling.waits(shoot) else None
    lease = None
    if operation.waits_for_gardenlet(shoot):
        lease = await reader.glance(LEASES, Key(LEASE_NAMESPACE, responsible_seed(shoot)))
    around = of_shoot.Around(
        profile=profile, seed=seed, managed_seed=managed, lease=lease, quotas=quotas, decision=decision
    )
    return of_shoot.findings(shoot, around, now=now)


async def profile_for(reader: Reader, shoot: Object) -> Object | None:
    """Offer of the Shoot's cloud profile; None if there is none, or the user may not read it."""
    resource, name = profiles.profile_of(spec(shoot))
    if not name:
        return None
    found = await reader.find(resource, Key(key(shoot).namespace if resource.namespaced else "", name))
    return profiles.offered(resource, found or {}) or None


async def _decision(reader: Reader, shoot: Object, profile: Object | None, now: datetime) -> scheduling.Decision | None:
    """Decision of the scheduler; None if the user may not read its inputs."""
    candidates = await seed_candidates(reader, scheduling.Usage(), now, is_candidate=_any)
    return None if candidates is None else scheduling.decide(shoot, profile, candidates)


async def seed_candidates(
    reader: Reader, usage: scheduling.Usage, now: datetime, *, is_candidate: Callable[[Object], bool]
) -> scheduling.SeedCandidates | None:
    """Inputs of the scheduler's decisions; None if the user may not read them. Args: usage: gets all Shoots."""

    def count(other: Object) -> bool:
        usage.update(seeds_of(other))
        return False

    def is_of_scheduler(config_map: Object) -> bool:
        return labels(config_map).get(PURPOSE) == REGION_CONFIG

    unread = len(reader.unread)
    seeds, _, config_maps = await asyncio.gather(
        reader.those(SEEDS, is_candidate),
        reader.those(SHOOTS, count),
        reader.those(CONFIG_MAPS, is_of_scheduler, namespace=NAMESPACE),
    )
    if len(reader.unread) > unread:
        return None
    configs = [scheduling.RegionConfig.of(each) for each in config_maps]
    return scheduling.SeedCandidates(
        seeds=sorted(map(scheduling.SeedInfo.of, seeds), key=lambda each: each.name),
        usage=usage,
        now=now,
        region_configs=configs,
        # Its configuration can't be read here. Gardens that measure distances mostly have such a ConfigMap.
        strategy=scheduling.Strategy.MINIMAL_DISTANCE if configs else scheduling.Strategy.SAME_REGION,
    )


async def _seed_of(reader: Reader, shoot: Object) -> Object | None:
    name = text(at(shoot, "status", "seedName")) or text(spec(shoot).get("seedName"))
    return await reader.find(SEEDS, Key("", name)) if name else None


async def _managed_seed(reader: Reader, own: Key) -> Key | None:
    if own.namespace != NAMESPACE:
        return None
    found = await reader.those(
        MANAGED_SEEDS, lambda each: at(each, "spec", "shoot", "name") == own.name, namespace=own.namespace
    )
    return next(map(key, found), None)


async def _quotas(reader: Reader, shoot: Object) -> list[Object]:
    named = lifetimes.binding_of(shoot)
    binding = None if named is None else await reader.find(*named)
    found = [await reader.find(QUOTAS, own) for own in users.quotas(binding or {})]
    return [each for each in found if each is not None]


# --- Seeds


async def _seed(reader: Reader, seed: Object, now: datetime) -> Explained:
    own = key(seed)
    (lease, is_known), found = await asyncio.gather(
        reader.look(LEASES, Key(LEASE_NAMESPACE, own.name)), _users(reader, SEEDS, own)
    )
    return of_seed.findings(seed, of_seed.Around(lease=lease, is_lease_known=is_known, users=found), now=now)


# --- Projects


async def _project(reader: Reader, project: Object, now: datetime) -> Explained:
    name = of_project.namespace_of(project)
    namespace, is_known, found, bindings = None, True, list[Users](), list[Object]()
    if name:
        namespace, is_known = await reader.look(NAMESPACES, Key("", name))
        found = [*await _contents(reader, name), *await _used_from_elsewhere(reader, name)]
        bindings = await reader.those(ROLE_BINDINGS, _any, namespace=name)
    around = of_project.Around(namespace=namespace, is_namespace_known=is_known, users=found, role_bindings=bindings)
    return of_project.findings(project, around, now=now)


async def _contents(reader: Reader, namespace: str) -> list[Users]:
    kinds = (SHOOTS, BACKUP_ENTRIES)
    found = await asyncio.gather(*(reader.those(kind, _any, namespace=namespace) for kind in kinds))
    return [Users(kind, sorted(map(key, objects))) for kind, objects in zip(kinds, found, strict=True)]


async def _used_from_elsewhere(reader: Reader, namespace: str) -> Iterator[Users]:
    def refers(binding: Object) -> bool:
        named = chain(users.secrets(binding), users.workload_identities(binding), users.quotas(binding))
        return any(each.namespace == namespace for each in named)

    kinds = (SECRET_BINDINGS, CREDENTIALS_BINDINGS)
    bindings = [each for found in await asyncio.gather(*(reader.those(k, refers) for k in kinds)) for each in found]
    places = sorted({key(each).namespace for each in bindings})
    shoots = await asyncio.gather(*(reader.those(SHOOTS, _any, namespace=place) for place in places))
    return of_project.used_from_elsewhere(namespace, chain.from_iterable(shoots), bindings)


# --- others


async def _other(reader: Reader, resource: Resource, obj: Object, now: datetime) -> Explained:
    missing: list[tuple[Resource, Key]] = []
    name = other.seed_name_of(resource, obj)
    for kind, own in other.named_by(resource, obj):
        found, is_known = await reader.look(kind, own)
        if found is None and is_known:
            missing.append((kind, own))
        if kind == SHOOTS and found is not None and not name:
            name = text(spec(found).get("seedName"))
    seed = await reader.find(SEEDS, Key("", name)) if name else None
    return other.findings(resource, obj, other.Around(seed_name=name, seed=seed, missing=missing), now=now)


def _any(_: Object) -> bool:
    return True


_EXPLAINED: Mapping[Resource, Callable[[Reader, Object, datetime], Awaitable[Explained]]] = {
    SHOOTS: _shoot,
    SEEDS: _seed,
    PROJECTS: _project,
}
