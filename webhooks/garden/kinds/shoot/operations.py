"""Requests to the controllers of a Shoot: operation annotations, tasks, forced deletion."""

from collections.abc import Iterator

from gardener import error_codes, keys
from gardener.garden.rotations import ONE_STEP, ROTATES, TWO_STEPS, Asked, due_pools, phase, requested, starts
from gardener.garden.rotations import SSH as SSH_KEYPAIR
from gardener.garden.shoots import has_ssh, last_operation
from kube.objects import Object, annotations, is_deleting, is_truthy, mappings, texts
from kube.paths import at
from kube.validation import FieldError, forbidden, not_supported
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.metadata import set_annotation
from webhooks.garden.common.operations import became_truthy, operation_of, remove_operation
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import is_to_hibernate, status

SSH = "rotate-ssh-keypair"
_ANY_TIME = (keys.OPERATION_RECONCILE, *TWO_STEPS, *ONE_STEP)
_AWAKE = tuple(name for name, (what, _) in TWO_STEPS.items() if what != "ca")
_FORCES = (
    error_codes.CLEANUP_CLUSTER_RESOURCES,
    error_codes.CONFIGURATION_PROBLEM,
    error_codes.INFRA_DEPENDENCIES,
    error_codes.INFRA_UNAUTHENTICATED,
    error_codes.INFRA_UNAUTHORIZED,
)


def asks(write: Write) -> bool:
    """Whether an UPDATE requests immediate work; see `webhooks.garden.common.operations`."""
    confined = at(write.spec, "maintenance", "confineSpecUpdateRollout") is True
    flipped = is_to_hibernate(write.spec) != is_to_hibernate(write.old_spec)
    requested = _operation_asks(write)
    return requested or (confined and flipped) or became_truthy(write, keys.CONFIRM_FORCE_DELETION)


def _operation_asks(write: Write) -> bool:
    operation, before = operation_of(write.new), last_operation(write.old)
    if not operation or not before:
        return False
    consumed = keys.OPERATION_RETRY if before.get("state") == "Failed" else keys.OPERATION_RECONCILE
    if operation == consumed:
        remove_operation(write.new)
        return True
    if before.get("state") == "Failed" or operation == operation_of(write.old):
        return False
    if operation == SSH and not has_ssh(write.spec):
        remove_operation(write.new)
        return False
    return requested(operation) is not None


# --- which operations are possible


def operation_errors(write: Write) -> Iterator[Finding]:
    """Rule for `checks`."""
    found = annotations(write.new)
    operation, planned = found.get(keys.OPERATION, ""), found.get(keys.MAINTENANCE_OPERATION, "")
    if not operation and not planned:
        return
    path, path_planned = _path(keys.OPERATION), _path(keys.MAINTENANCE_OPERATION)
    for where, what, known in (
        (path, operation, (keys.OPERATION_MAINTAIN, keys.OPERATION_RETRY, *_ANY_TIME)),
        (path_planned, planned, _ANY_TIME),
    ):
        if what and what not in known and requested(what) is None:
            yield not_supported(where, what, sorted(known))
        elif what:
            yield from _possible(write, where, what)
    if operation and operation == planned:
        message = f"annotations {keys.OPERATION} and {keys.MAINTENANCE_OPERATION} must not be equal"
        yield forbidden("metadata.annotations", message)
    if planned in _AWAKE and is_to_hibernate(write.spec):
        message = f"must not be hibernated while the annotation {keys.MAINTENANCE_OPERATION} is {planned}"
        yield forbidden("spec.hibernation.enabled", message)


def _path(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"


def _possible(write: Write, path: str, operation: str) -> Iterator[FieldError]:
    if operation in _AWAKE and (is_to_hibernate(write.spec) or status(write.old).get("hibernated") is True):
        yield forbidden(path, f"operation {operation} is not possible while the Shoot is hibernated or waking up")
    what, step = TWO_STEPS.get(operation, ("", ""))
    phases = {phase(write.old, each) for each in ROTATES.get(what, ())}
    if starts(operation) and (not _is_settled(write.old) or not phases <= {"", "Completed"}):
        yield forbidden(
            path, f"cannot start {operation}: the Shoot must have been created, and the previous rotation completed"
        )
    if step == "complete" and phases != {"Prepared"}:
        yield forbidden(path, f"cannot complete: all credentials of {operation} must be in phase Prepared")
    rotation, due = requested(operation) or Asked(), due_pools(write.old)
    if others := sorted({*rotation.pools} - due):
        waiting = ", ".join(sorted(due)) or "none"
        yield forbidden(path, f"cannot roll out {', '.join(others)}: worker pools that wait for it: {waiting}")


def _is_settled(shoot: Object) -> bool:
    operation = last_operation(shoot)
    kind, state = operation.get("type"), operation.get("state")
    return kind == "Reconcile" or (kind in {"Create", "Restore"} and state == "Succeeded")


# --- tasks


def set_tasks(write: Write) -> None:
    """Add tasks for the next pass, each only once."""
    wanted = list(dict.fromkeys(_tasks(write)))
    before = [task.strip() for task in annotations(write.new).get(keys.TASKS, "").split(",") if task.strip()]
    if set(wanted) - set(before):
        set_annotation(write.new, keys.TASKS, ",".join(dict.fromkeys((*before, *wanted))))


_INFRASTRUCTURE = "deployInfrastructure"
_DNS = ("deployDNSRecordInternal", "deployDNSRecordExternal", "deployDNSRecordIngress")


def _tasks(write: Write) -> Iterator[str]:
    if write.is_create or (is_to_hibernate(write.old_spec) and not is_to_hibernate(write.spec)):
        yield from (_INFRASTRUCTURE, *_DNS)
        return
    operation = operation_of(write.new)
    rotates = SSH_KEYPAIR in (requested(operation) or Asked()).renews and operation != operation_of(write.old)
    settings = ("spec", "provider", "workersSettings", "sshAccess")
    if rotates or write.changed("spec", "provider", "infrastructureConfig") or write.changed(*settings):
        yield _INFRASTRUCTURE
    if write.changed("spec", "dns"):
        yield from _DNS


def remember_retry(write: Write) -> None:
    """Mark changes that wait for the maintenance time window, to be tried there even after a failed operation."""
    confined = at(write.spec, "maintenance", "confineSpecUpdateRollout") is True
    if write.is_update and confined and write.changed("spec") and last_operation(write.old).get("state") == "Failed":
        set_annotation(write.new, keys.NEEDS_RETRY, "true")


# --- forced deletion


def force_deletion_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`."""
    name = keys.CONFIRM_FORCE_DELETION
    path, was_set = _path(name), is_truthy(annotations(write.old).get(name))
    if was_set and not is_truthy(annotations(write.new).get(name)):
        yield forbidden(path, "force-deletion annotation cannot be removed once set")
    if not became_truthy(write, name):
        return
    if not is_deleting(write.old):
        yield forbidden(path, "force-deletion annotation cannot be set when Shoot deletionTimestamp is nil")
        return
    codes = {code for error in mappings(status(write.old).get("lastErrors")) for code in texts(error.get("codes"))}
    if not codes & set(_FORCES):
        needed = " ".join(_FORCES)
        yield forbidden(
            path, f"force-deletion annotation needs one of these error codes in the Shoot's status: [{needed}]"
        )


def force_deletion_errors(write: Write) -> Iterator[Finding]:
    """Rule for `checks`: a new Shoot cannot have forced deletion."""
    if write.is_create and is_truthy(annotations(write.new).get(keys.CONFIRM_FORCE_DELETION)):
        yield forbidden(_path(keys.CONFIRM_FORCE_DELETION), "force-deletion annotation cannot be set on creation")
