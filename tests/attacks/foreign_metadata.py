"""A gardenlet that changes metadata by which others act, of objects that it only uses or handles.

    python -m tests.attacks.foreign_metadata

Each attack is a few requests to the API server of a garden on loopback. To attack the admission of another checkout, run
a copy of this file there.
"""

import sys
import time
from functools import partial
from typing import Any

from attacks.gardens import Attack, Attempt, try_all
from gardener.api import garden as resources
from kit.seed_rights import TwoSeeds
from kube import resources as kubernetes
from kube.objects import Object

_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "11111111-2222-3333-4444-555555555555"}
_ROLE = "gardener.cloud/role"
_DOMAIN = {
    "labels": {_ROLE: "default-domain"},
    "annotations": {"dns.gardener.cloud/provider": "local", "dns.gardener.cloud/domain": "evil.example"},
}


def _secret(body: Object) -> Attack:
    """Of a Shoot: its gardenlet only uses it."""

    def attack(seeds: TwoSeeds) -> Attempt:
        gardenlet = seeds.garden.as_gardenlet(seeds.own)
        return partial(gardenlet.patch, kubernetes.SECRETS, "named", body, namespace=seeds.place.namespace)

    return attack


def _shoot(body: Object) -> Attack:
    def attack(seeds: TwoSeeds) -> Attempt:
        gardenlet = seeds.garden.as_gardenlet(seeds.own)
        return partial(gardenlet.patch, resources.SHOOTS, "s", body, namespace=seeds.place.namespace)

    return attack


def _publishes_a_domain(seeds: TwoSeeds) -> Attempt:
    gardenlet, namespace = seeds.garden.as_gardenlet(seeds.own), seeds.place.namespace
    labels = {"labels": {_ROLE: "internal-domain"}}
    return partial(
        gardenlet.create, kubernetes.SECRETS, "s.kubeconfig", namespace=namespace, metadata=labels, dry_run=True
    )


def _takes_the_bucket_of_another(seeds: TwoSeeds) -> Attempt:
    uid = seeds.place.get(resources.SEEDS, seeds.foreign)["metadata"]["uid"]
    spec: Any = {"seedName": seeds.own, "provider": {"type": seeds.place.name, "region": "r"}}
    spec["secretRef"] = {"name": "backup", "namespace": "garden"}
    return partial(seeds.garden.as_gardenlet(seeds.own).create, resources.BACKUP_BUCKETS, uid, spec=spec, dry_run=True)


def _is_selected(seeds: TwoSeeds) -> Attempt:
    """For an extension that operators install on Seeds with a label; admission learns of the selector a moment later."""
    label = f"trust-{seeds.place.name}"
    deployment = {"seedSelector": {"matchLabels": {label: "high"}}}
    seeds.place.create(resources.CONTROLLER_REGISTRATIONS, label, spec={"deployment": deployment})
    time.sleep(2)
    change: Object = {"metadata": {"labels": {label: "high"}}}
    return partial(seeds.garden.as_gardenlet(seeds.own).patch, resources.SEEDS, seeds.own, change)


def _owned_seed(seeds: TwoSeeds) -> Attempt:
    change: Object = {"metadata": {"ownerReferences": [{**_OWNER, "kind": "Namespace"}]}}
    return partial(seeds.garden.as_gardenlet(seeds.own).patch, resources.SEEDS, seeds.own, change)


_ATTACKS: dict[str, Attack] = {
    "credentials become a default domain of all Seeds": _secret({"metadata": _DOMAIN}),
    "credentials get an owner that does not exist": _secret({"metadata": {"ownerReferences": [_OWNER]}}),
    "credentials become immutable": _secret({"immutable": True}),
    "credentials get a finalizer for ever": _secret({"metadata": {"finalizers": ["example.com/forever"]}}),
    "a Shoot gets an owner that does not exist": _shoot({"metadata": {"ownerReferences": [_OWNER]}}),
    "a Shoot gets a label by which others select": _shoot({"metadata": {"labels": {"a": "b"}}}),
    "deletion of a Shoot is confirmed": _shoot(
        {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
    ),
    "what is published of a Shoot is an internal domain": _publishes_a_domain,
    "the BackupBucket of another Seed, in advance": _takes_the_bucket_of_another,
    "its Seed gets an owner that does not exist, to be registered again": _owned_seed,
    "its Seed gets a label by which operators select": _is_selected,
}


if __name__ == "__main__":
    sys.exit(try_all(_ATTACKS))
