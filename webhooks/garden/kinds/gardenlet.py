"""Gardenlets: gardenlets that keep themselves up to date."""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import MANAGED_SEEDS
from gardener.api.garden.gardenlet import GARDENLET as DEFINITION
from gardener.garden.seed_graph import of_gardenlet
from kube.objects import Object
from kube.paths import mapping_at
from webhooks.garden.common import gardenlet_config, operations, seed_spec
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.metadata import allowed_operations, in_garden, operation_not_overwritten
from webhooks.garden.common.seed_references import reading_rights
from webhooks.garden.common.write import Write
from webhooks.rules.shapes import child

CONFIG = "spec.config"
CONSUMED, KEPT = (keys.OPERATION_RECONCILE,), (keys.OPERATION_RENEW_KUBECONFIG,)


def complete(write: Write) -> None:
    spec = write.spec
    if not spec:
        return
    gardenlet_config.set_pull_policy(child(spec, "deployment"))
    spec["config"] = gardenlet_config.completed(child(spec, "config"))
    if gardenlet_config.readable(spec["config"]) is not None:
        seed_spec.set_backup_secret(
            mapping_at(spec["config"], *gardenlet_config.SEED_SPEC), write.name, write.namespace
        )


def config_errors(write: Write) -> Iterator[Finding]:
    config = mapping_at(write.spec, "config")
    yield from gardenlet_config.deployment_errors(mapping_at(write.spec, "deployment"), "spec.deployment")
    yield from gardenlet_config.errors(config, CONFIG)
    yield from gardenlet_config.missing(config, CONFIG)


def no_managed_seed(write: Write) -> Iterator[Finding]:
    """There is no ManagedSeed of this name."""
    if write.is_create and write.garden.get(MANAGED_SEEDS, write.name, write.namespace) is not None:
        yield Denial(
            f"cannot create Gardenlet {write.namespace}/{write.name} since there is already a ManagedSeed object "
            "with the same name"
        )


def seed_changes(write: Write) -> Iterator[Finding]:
    yield from seed_spec.change_errors(_seed(write.new), _seed(write.old), f"{CONFIG}.seedConfig.spec")


def _seed(gardenlet: Object) -> Object:
    config = gardenlet_config.readable(mapping_at(gardenlet, "spec", "config"))
    return mapping_at(config or {}, *gardenlet_config.SEED_SPEC)


GARDENLET = Kind(
    definition=DEFINITION,
    defaults=(complete,),
    asks=operations.on(consumed=CONSUMED, kept=KEPT),
    checks=(in_garden, config_errors, allowed_operations(*CONSUMED, *KEPT)),
    references=(no_managed_seed,),
    changes=(seed_changes, operation_not_overwritten),
    rights=(reading_rights(of_gardenlet, f"{CONFIG}.seedConfig"),),
    reads=(MANAGED_SEEDS,),
)
