"""Requests for work without a change of the spec: operation annotations, and the counter that they raise.

The generation of a custom resource rises with every change outside `metadata` and `status`, and a webhook cannot raise
it. So kinds with operation annotations have the field `operation.sequence` next to spec and status. It belongs to the
mutating webhook: values of users are replaced by the stored one, and a write that requests work raises it by one.
"""

from collections.abc import Callable, Collection

from gardener import keys
from kube.objects import Object, annotations, integer, is_truthy, mapping
from webhooks.garden.common.write import Write

FIELD = "operation"

Asks = Callable[[Write], bool]
"""Whether an UPDATE requests work; removes the annotation if the request is complete with this."""


def keep_sequence(write: Write, asks: Asks | None) -> None:
    """Set `operation` in the new object."""
    stored = write.old.get(FIELD)
    write.new.pop(FIELD, None)
    if write.is_update and asks is not None and asks(write):
        write.new[FIELD] = {"sequence": integer(mapping(stored).get("sequence")) + 1}
    elif stored is not None:
        write.new[FIELD] = stored


def operation_of(obj: Object) -> str:
    return annotations(obj).get(keys.OPERATION, "")


def remove_operation(obj: Object) -> None:
    remove_annotation(obj, keys.OPERATION)


def remove_annotation(obj: Object, name: str) -> None:
    meta = mapping(obj.get("metadata"))
    if name in annotations(obj):
        kept = {key: value for key, value in annotations(obj).items() if key != name}
        if kept:
            meta["annotations"] = kept
        else:
            del meta["annotations"]


def on(*, consumed: Collection[str] = (), kept: Collection[str] = ()) -> Asks:
    """Return a function that detects requests for these operations.

    Args:
        consumed: operations whose annotation is removed.
        kept: operations whose annotation the controller removes; they count when they are new.
    """

    def asks(write: Write) -> bool:
        operation = operation_of(write.new)
        if operation in consumed:
            remove_operation(write.new)
            return True
        return operation in kept and operation != operation_of(write.old)

    return asks


def backup_entry(write: Write) -> bool:
    """Whether a BackupEntry requests work. Operations are removed, except `restore`, which counts only when new."""
    operation, before = operation_of(write.new), operation_of(write.old)
    requested = operation == keys.OPERATION_RESTORE and operation != before
    if operation and operation != keys.OPERATION_RESTORE:
        remove_operation(write.new)
        requested = True
    return became_truthy(write, keys.FORCE_ENTRY_DELETION) or requested


def bastion(write: Write) -> bool:
    operation, before = operation_of(write.new), operation_of(write.old)
    requested = operation == keys.OPERATION_RECONCILE and operation != before
    return became_truthy(write, keys.CONFIRM_FORCE_DELETION) or requested


def became_truthy(write: Write, annotation: str) -> bool:
    return is_truthy(annotations(write.new).get(annotation)) and not is_truthy(annotations(write.old).get(annotation))
