"""Deletions and other changes that a user has to confirm by an annotation."""

from collections.abc import Iterator

from gardener import keys
from kube.objects import Object, annotations, finalizers, is_truthy
from webhooks.garden.common.findings import Denial
from webhooks.garden.common.metadata import set_annotation
from webhooks.garden.common.operations import remove_annotation
from webhooks.garden.common.write import Mutation, Rule, Write

_FOREGROUND = "foregroundDeletion"
"""A finalizer."""


def is_confirmed(obj: Object) -> bool:
    return is_truthy(annotations(obj).get(keys.CONFIRM_DELETION))


def confirmed(write: Write) -> Iterator[Denial]:
    """Rule for `deletions`."""
    if not is_confirmed(write.new):
        yield Denial(f'must have a "{keys.CONFIRM_DELETION}" annotation to delete')


def in_order(owned: str) -> Rule:
    """Rule for `deletions`: in the foreground, the garbage collector would delete all owned objects at once."""

    def rule(write: Write) -> Iterator[Denial]:
        if _is_in_foreground(write):
            yield Denial(
                f"cannot be deleted with propagationPolicy Foreground, since its controller deletes {owned} in order - "
                "use Background, which is the default"
            )

    return rule


def _is_in_foreground(write: Write) -> bool:
    """Whether the API server deletes in the foreground; a finalizer decides if the request has no option for it."""
    policy = write.options.get("propagationPolicy")
    if policy or write.options.get("orphanDependents") is not None:
        return policy == "Foreground"
    return _FOREGROUND in finalizers(write.new)


def confirmed_by(confirmation: str, name: str) -> Mutation:
    """Record the user that first set the annotation `confirmation` in annotation `name`, safe from forgery."""

    def remember(write: Write) -> None:
        if not is_truthy(annotations(write.new).get(confirmation)):
            remove_annotation(write.new, name)
        elif not is_truthy(annotations(write.old).get(confirmation)):
            set_annotation(write.new, name, write.user.name)
        elif (before := annotations(write.old).get(name)) is not None:
            set_annotation(write.new, name, before)
        else:
            remove_annotation(write.new, name)

    return remember


remember_who_confirmed = confirmed_by(keys.CONFIRM_DELETION, keys.DELETION_CONFIRMED_BY)
