"""The Seed of a ManagedSeed, or its gardenlet: inputs from its parent, its Shoot and the object itself."""

import base64
import hashlib

from agent.gardenlet.managed_seeds.installation.rules import bootstrap, values
from gardener import operations
from gardener.conditions import SHOOT_RECONCILED
from gardener.garden.managed_seeds import domain_of, seed_template_path
from gardener.garden.shoots import last_errors, last_operation
from kube.objects import Object, condition, integer, key, mapping, spec, text
from kube.paths import at, mapping_at

_DEFAULT_WAY = bootstrap.TOKEN


class Undeployable(Exception):
    """The ManagedSeed lacks information for the deployment; the text names it."""


def is_reconciled(shoot: Object) -> bool:
    """Whether the last operation on the Shoot succeeded, for its present spec."""
    is_up_to_date = integer(at(shoot, "status", "observedGeneration")) == operations.generation(shoot)
    return is_up_to_date and last_operation(shoot).get("state") == operations.SUCCEEDED


def is_reconciled_again(managed_seed: Object, shoot: Object) -> bool:
    """Whether the Shoot was reconciled before, and is just being reconciled again, without errors so far: no news."""
    last = last_operation(shoot)
    is_under_way = (last.get("type"), last.get("state")) == (operations.RECONCILE, operations.PROCESSING)
    known = condition(managed_seed, SHOOT_RECONCILED) or {}
    return is_under_way and known.get("status") == "True" and not last_errors(shoot)


def way_of(managed_seed: Object) -> str:
    return text(at(managed_seed, "spec", "gardenlet", "bootstrap")) or _DEFAULT_WAY


def seed_spec(managed_seed: Object) -> Object:
    return mapping_at(managed_seed, "spec", *seed_template_path(spec(managed_seed)), "spec")


def template_of(managed_seed: Object) -> Object | None:
    """Metadata and spec of the Seed if its gardenlet is deployed by other means; None if it is installed here."""
    template = spec(managed_seed).get("seedTemplate")
    return values.with_name(template, key(managed_seed).name) if isinstance(template, dict) else None


def has_own_autoscaler(managed_seed: Object) -> bool:
    """Whether the seed deploys its own vertical pod autoscaler."""
    return at(seed_spec(managed_seed), "settings", "verticalPodAutoscaler", "enabled") is not False


def configuration(managed_seed: Object, *, parent: Object) -> Object:
    """Configuration of the gardenlet without kubeconfigs; `parent` is the configuration of this gardenlet.

    Raises:
        Undeployable: it has no Seed.
    """
    name, gardenlet = key(managed_seed).name, mapping_at(managed_seed, "spec", "gardenlet")
    config = gardenlet.get("config")
    if not isinstance(config, dict) or not isinstance(config.get("seedConfig"), dict):
        raise Undeployable(f"no seed config found for managedseed {name}: set spec.gardenlet.config.seedConfig")
    merges = gardenlet.get("mergeWithParent") is not False
    whole = values.overlaid(values.inherited(parent), config) if merges else config
    return values.named(whole, name)


def demand_way_in(managed_seed: Object, config: Object) -> None:
    """Check that there is a way into the garden.

    Raises:
        Undeployable: there is none.
    """
    if way_of(managed_seed) == bootstrap.NONE and not text(at(config, values.CONNECTION, "kubeconfig")):
        raise Undeployable(
            "the gardenlet has no kubeconfig for the garden, since it does not inherit that of its parent; set "
            "spec.gardenlet.config.gardenClientConnection.kubeconfig to a file of spec.gardenlet.deployment."
            "additionalVolumes, or recreate the ManagedSeed with another spec.gardenlet.bootstrap"
        )


def deployment(managed_seed: Object, shoot: Object, *, image: Object, others: Object, backup: Object | None) -> Object:
    """Values for its Deployment.

    Args:
        managed_seed: owner of the gardenlet.
        shoot: Shoot of the cluster.
        image: of this gardenlet.
        others: values with image overwrites.
        backup: Secret with credentials for backups; None if there is none.
    """
    found = {**others, **values.with_image(mapping_at(managed_seed, "spec", "gardenlet", "deployment"), image)}
    domain = domain_of(shoot)
    found = values.with_host(found, f"api.{domain}" if domain else "")
    if backup is None:
        return found
    notes = {"checksum/seed-backup-secret": f"{key(backup).name}-{checksum(mapping(backup.get('data')))}"}
    return {**found, "podAnnotations": {**notes, **mapping(found.get("podAnnotations"))}}


def checksum(data: Object) -> str:
    """Checksum of the data of a Secret, the same as upstream's: another one would restart the gardenlet."""
    digests = [hashlib.sha256(base64.b64decode(data[name])).hexdigest() for name in sorted(data)]
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:8]


def backup_reference(managed_seed: Object) -> Object | None:
    """Reference to the Secret with credentials for backups; None if it has no backups."""
    backup = seed_spec(managed_seed).get("backup")
    return mapping(mapping(backup).get("secretRef")) if isinstance(backup, dict) else None


def binding_of(shoot: Object) -> tuple[str, str, str]:
    """Kind and name of the Shoot's binding, and the field with the reference to the Secret.

    Raises:
        Undeployable: it has no binding.
    """
    wanted = spec(shoot)
    if name := text(wanted.get("secretBindingName")):
        return "SecretBinding", name, "secretRef"
    if name := text(wanted.get("credentialsBindingName")):
        return "CredentialsBinding", name, "credentialsRef"
    raise Undeployable(
        f"both secretBindingName and credentialsBindingName are nil for the Shoot: {key(shoot)}; set one of them"
    )
