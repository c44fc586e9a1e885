"""A gardenlet that enters what decides what it may read: credentials, and names of another Shoot.

    python -m tests.attacks.seed_references

Each attack is a few requests to the API server of a garden on loopback. To attack the admission of another checkout, run
a copy of this file there.
"""

import sys
import time
from functools import partial
from typing import Any

from attacks.gardens import Attack, Attempt, try_all
from gardener.api import garden as resources
from kit.garden_shoots import ShootPlace
from kit.seed_rights import TwoSeeds
from kube import resources as kubernetes
from kube.objects import Object, uid

_ISSUER = {"name": "workload-identity-issuer", "namespace": "garden"}
_NEW = {"name": "default-domain-of-all", "namespace": "garden"}
_CONFIGURATION = {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}


def _provider(seeds: TwoSeeds, reference: Object) -> Object:
    return {"dns": {"provider": {"type": seeds.place.name, "secretRef": reference}}}


def _refers_to(reference: Object, seeds: TwoSeeds) -> Attempt:
    change = {"spec": _provider(seeds, reference)}
    return partial(seeds.garden.as_gardenlet(seeds.own).patch, resources.SEEDS, seeds.own, change)


def _makes_its_seed_again(seeds: TwoSeeds) -> Attempt:
    gardenlet, spec = seeds.garden.as_gardenlet(seeds.own), seeds.place.get(resources.SEEDS, seeds.own)["spec"]

    def attempt() -> None:
        gardenlet.delete(resources.SEEDS, seeds.own)
        gardenlet.create(resources.SEEDS, seeds.own, spec=spec | _provider(seeds, _ISSUER))

    return attempt


def _registers_with_any_secret(seeds: TwoSeeds) -> Attempt:
    new = f"{seeds.place.name}-n"
    spec = seeds.place.get(resources.SEEDS, seeds.own)["spec"] | _provider(seeds, _NEW) | {"backup": None}
    return partial(seeds.garden.as_gardenlet(new).create, resources.SEEDS, new, spec=spec, dry_run=True)


def _enters_it_in_its_gardenlet(seeds: TwoSeeds) -> Attempt:
    seed = seeds.place.get(resources.SEEDS, seeds.own)["spec"] | _provider(seeds, _NEW)
    deployment = {"helm": {"ociRepository": {"ref": "registry.example.com/gardenlet:v1"}}}
    spec = {"deployment": deployment, "config": {**_CONFIGURATION, "seedConfig": {"spec": seed}}}
    gardenlet = seeds.garden.as_gardenlet(seeds.own)
    return partial(gardenlet.create, resources.GARDENLETS, seeds.own, namespace="garden", spec=spec, dry_run=True)


def _managed(seeds: TwoSeeds, **seed: Any) -> tuple[str, str]:
    """A Seed, and a ManagedSeed in its Shoot. Args: seed: `spec` of its Seed."""
    place = ShootPlace(seeds.garden, is_garden=True)
    parent, child = place.seed(), f"{place.name}-c"
    providers = [{"type": place.name, "primary": True, "secretName": place.name}]
    dns = {"domain": f"{child}.{place.name}.example.com", "providers": providers}
    version = {"version": "1.30.1", "verticalPodAutoscaler": {"enabled": True}}
    place.shoot(child, seedName=parent, dns=dns, kubernetes=version)
    gardenlet = {"config": {**_CONFIGURATION, "seedConfig": {"spec": seed}}} if seed else {}
    place.create(resources.MANAGED_SEEDS, child, spec={"shoot": {"name": child}, "gardenlet": gardenlet})
    return parent, child


def _writes_the_backup_secret_of_a_managed_seed(seeds: TwoSeeds) -> Attempt:
    """An operator has made it, in the namespace of a Project; the authorizer learns of the ManagedSeed a moment later."""
    reference = {"name": "unused", "namespace": seeds.place.namespace}
    parent, _ = _managed(seeds, backup={"provider": "local", "region": "local", "secretRef": reference})
    time.sleep(2)
    gardenlet, change = seeds.garden.as_gardenlet(parent), {"data": {"key": "ZXZpbA=="}}
    return partial(gardenlet.patch, kubernetes.SECRETS, "unused", change, namespace=seeds.place.namespace)


def _enters_it_in_a_managed_seed(seeds: TwoSeeds) -> Attempt:
    parent, child = _managed(seeds)
    tenants = {"name": "unused", "namespace": seeds.place.namespace}
    provider = {"dns": {"provider": {"type": seeds.place.name, "secretRef": tenants}}}
    change = {"spec": {"gardenlet": {"config": {"seedConfig": {"spec": provider}}}}}
    return partial(seeds.garden.as_gardenlet(parent).patch, resources.MANAGED_SEEDS, child, change, namespace="garden")


def _says_that_it_was_generated(seeds: TwoSeeds) -> Attempt:
    gardenlet, bucket = seeds.garden.as_gardenlet(seeds.own), uid(seeds.place.get(resources.SEEDS, seeds.own))
    backup = {"name": "backup", "namespace": "garden"}
    spec = {"seedName": seeds.own, "provider": {"type": seeds.place.name, "region": "r"}, "secretRef": backup}
    seeds.garden.create(resources.BACKUP_BUCKETS, bucket, spec=spec)
    return partial(
        gardenlet.patch, resources.BACKUP_BUCKETS, bucket, {"status": {"generatedSecretRef": _ISSUER}}, status=True
    )


def _confirms_itself(seeds: TwoSeeds) -> Attempt:
    meta = {"labels": {f"usable-by.seed.gardener.cloud/{seeds.own}": "true"}}
    gardenlet, namespace = seeds.garden.as_gardenlet(seeds.own), seeds.place.namespace
    return partial(gardenlet.patch, kubernetes.SECRETS, "named", {"metadata": meta}, namespace=namespace)


def _status(field: str, seeds: TwoSeeds) -> Attempt:
    place = seeds.place
    place.shoot("n", seedName=seeds.own)
    stolen = {"uid": uid(place.get(resources.SHOOTS, "f")), "technicalID": f"shoot--{place.name}--f"}
    gardenlet = seeds.garden.as_gardenlet(seeds.own)
    body = {"status": {field: stolen[field]}}
    return partial(gardenlet.patch, resources.SHOOTS, "n", body, namespace=place.namespace, status=True)


def _makes_the_backup_of_another(seeds: TwoSeeds) -> Attempt:
    place = seeds.place
    name = f"shoot--{place.name}--f--{uid(place.get(resources.SHOOTS, 'f'))}"
    spec = {"seedName": seeds.own, "bucketName": uid(place.get(resources.SEEDS, seeds.own))}
    gardenlet = seeds.garden.as_gardenlet(seeds.own)
    return partial(gardenlet.create, resources.BACKUP_ENTRIES, name, namespace=place.namespace, spec=spec, dry_run=True)


_ATTACKS: dict[str, Attack] = {
    "its Seed refers to the key of all WorkloadIdentities": partial(_refers_to, _ISSUER),
    "its Seed refers to credentials of others": partial(_refers_to, _NEW),
    "its Seed is deleted, and refers to more when it is created again": _makes_its_seed_again,
    "a new Seed refers to credentials of others": _registers_with_any_secret,
    "its Gardenlet refers to credentials of others": _enters_it_in_its_gardenlet,
    "the ManagedSeed in its Shoot refers to a Secret of a Project": _enters_it_in_a_managed_seed,
    "credentials of the ManagedSeed in its Shoot, made by others, get other content": (
        _writes_the_backup_secret_of_a_managed_seed
    ),
    "its BackupBucket has any Secret as a generated one": _says_that_it_was_generated,
    "credentials are confirmed by the gardenlet itself": _confirms_itself,
    "the status of its Shoot has the uid of another": partial(_status, "uid"),
    "the status of its Shoot has the technical ID of another": partial(_status, "technicalID"),
    "the BackupEntry of another Shoot, in advance": _makes_the_backup_of_another,
}


if __name__ == "__main__":
    sys.exit(try_all(_ATTACKS))
