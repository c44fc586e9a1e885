"""The state of a Shoot, by its status."""

from collections.abc import Callable

from gardener import keys, operations
from gardener.error_codes import INFRA_RATE_LIMITS_EXCEEDED
from gardener.garden.rotations import in_progress
from kube.objects import Object, finalizers, integer, is_deleting, mapping, mappings, metadata, spec, text, texts
from kube.paths import at, mapping_at, mappings_at
from kube.resources import CONFIG_MAPS, SECRETS, Resource

FAILED = "Failed"
"""State of an operation that is not retried until a user requests it."""
SUCCEEDED = "Succeeded"

_REFERABLE = {SECRETS.kind: SECRETS, CONFIG_MAPS.kind: CONFIG_MAPS}


_TECHNICAL_ID = "shoot--"


def technical_id_of(project: str, shoot: str) -> str:
    """Name of the cluster of a Shoot in its Seed."""
    return f"{_TECHNICAL_ID}{project}--{shoot}"


def parse_technical_id(name: str) -> tuple[str, str]:
    """Names of Project and Shoot; empty if it is no technical ID."""
    project, _, shoot = name.removeprefix(_TECHNICAL_ID).partition("--")
    return (project, shoot) if name.startswith(_TECHNICAL_ID) and project and shoot else ("", "")


def last_operation(shoot: Object) -> Object:
    return mapping_at(shoot, "status", "lastOperation")


def workers(shoot_spec: Object) -> list[Object]:
    """Its worker pools; none in a cluster without workers."""
    return mappings_at(shoot_spec, "provider", "workers")


def has_ssh(shoot_spec: Object) -> bool:
    """Whether its nodes are reached by SSH."""
    enabled = at(shoot_spec, "provider", "workersSettings", "sshAccess", "enabled")
    return bool(workers(shoot_spec)) and enabled is not False


def zones_of_workers(shoot_spec: Object) -> list[str]:
    """Sorted."""
    return sorted({zone for worker in workers(shoot_spec) for zone in texts(worker.get("zones"))})


def is_current(shoot: Object) -> bool:
    """Whether the status is about the present spec."""
    return integer(at(shoot, "status", "observedGeneration")) == integer(metadata(shoot).get("generation"))


def is_confined(shoot: Object) -> bool:
    """Whether changes of its spec wait for the maintenance time window."""
    return at(spec(shoot), "maintenance", "confineSpecUpdateRollout") is True


def has_failed(shoot: Object) -> bool:
    """Whether the last request has failed for good."""
    return last_operation(shoot).get("state") == FAILED and is_current(shoot)


def last_errors(shoot: Object) -> list[Object]:
    return mappings(at(shoot, "status", "lastErrors"))


def error_codes(shoot: Object) -> set[str]:
    return {code for error in last_errors(shoot) for code in texts(error.get("codes"))}


def met_rate_limit(shoot: Object) -> bool:
    """Whether the last request has failed for good because of a rate limit, which may pass with time."""
    return has_failed(shoot) and INFRA_RATE_LIMITS_EXCEEDED in error_codes(shoot)


def is_abandoned(shoot: Object) -> bool:
    """Whether it is being deleted, and nothing of its cluster is left that would need its references."""
    return is_deleting(shoot) and keys.GARDENER_FINALIZER not in finalizers(shoot)


def responsible_seed(obj: Object) -> str:
    """Seed whose gardenlet handles a Shoot or BackupEntry, and reports its state; empty if there is none.

    While the control plane moves, it is the source Seed until that has released the object.
    """
    scheduled = text(spec(obj).get("seedName"))
    return (text(at(obj, "status", "seedName")) or scheduled) if scheduled else ""


def is_on(seed: str) -> Callable[[Object], bool]:
    """Whether the Seed is the responsible one of a Shoot or BackupEntry."""
    return lambda obj: responsible_seed(obj) == seed


def seeds_of(shoot: Object) -> list[str]:
    """Its scheduled Seed, and the one that it leaves."""
    names = (text(spec(shoot).get("seedName")), text(at(shoot, "status", "seedName")))
    return [name for name in dict.fromkeys(names) if name]


def selectors_of_users(seed: str) -> tuple[str, str]:
    """Field selectors that together find each Shoot of which the Seed is one of `seeds_of`, once."""
    return f"spec.seedName={seed}", f"spec.seedName!={seed},status.seedName={seed}"


def operation_of(shoot: Object) -> str:
    """The type of the operation that its responsible Seed has to carry out.

    A Shoot that is deleted before its move has started is deleted where it is, since its objects there would remain.
    Later, the move is completed first: only a whole control plane can delete what extensions have created outside.
    """
    last = last_operation(shoot)
    if is_to_move(shoot):
        return operations.DELETE if is_deleting(shoot) and is_settled(shoot) else operations.MIGRATE
    if is_settled(shoot):
        return operations.operation_of(shoot)
    has_left = last.get("state") in {operations.SUCCEEDED, operations.ABORTED}
    return operations.MIGRATE if last.get("type") == operations.MIGRATE and not has_left else operations.RESTORE


def is_to_move(shoot: Object) -> bool:
    """Whether its control plane has to go to another Seed than the responsible one."""
    return text(spec(shoot).get("seedName")) != responsible_seed(shoot)


def is_settled(shoot: Object) -> bool:
    """Whether the Shoot is complete on its Seed: it has not begun to leave, and any restoration has succeeded."""
    last = last_operation(shoot)
    is_arriving = last.get("type") == operations.RESTORE and last.get("state") != operations.SUCCEEDED
    return not (is_arriving or last.get("type") == operations.MIGRATE)


def obstacle_to_move(shoot: Object) -> str:
    """Reason why no move of its control plane to another Seed can begin; empty if there is none."""
    here, last = responsible_seed(shoot), last_operation(shoot)
    if busy := in_progress(shoot):
        return (
            f"a Shoot can't move while its credentials are rotated ({busy}); wait until the operation has succeeded, "
            f"with spec.seedName {here}"
        )
    if last.get("type") == operations.CREATE and last.get("state") != operations.SUCCEEDED:
        return (
            "a Shoot can't move before it has been created; wait until status.lastOperation of type Create has "
            f"succeeded, with spec.seedName {here}"
        )
    return ""


def references(shoot: Object) -> list[tuple[Resource, str]]:
    """The Secrets and ConfigMaps of its namespace that a Shoot names, each once."""
    server = mapping_at(spec(shoot), "kubernetes", "kubeAPIServer")
    found = [(SECRETS, each.get("secretName")) for each in mappings(at(spec(shoot), "dns", "providers"))]
    found += [(SECRETS, each.get("kubeconfigSecretName")) for each in mappings(server.get("admissionPlugins"))]
    found.append((CONFIG_MAPS, at(server, "auditConfig", "auditPolicy", "configMapRef", "name")))
    found.append((CONFIG_MAPS, at(server, "structuredAuthentication", "configMapName")))
    for each in mappings(spec(shoot).get("resources")):
        reference = mapping(each.get("resourceRef"))
        resource = _REFERABLE.get(text(reference.get("kind")))
        if resource is not None and reference.get("apiVersion") == resource.api_version:
            found.append((resource, reference.get("name")))
    return list(dict.fromkeys((resource, text(name)) for resource, name in found if text(name)))
