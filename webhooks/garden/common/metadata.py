"""Labels and annotations managed by webhooks, names, and other rules about metadata."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from gardener import keys
from kube.names import label_name_problems
from kube.objects import Object, annotations, labels, string_map, text
from kube.paths import at
from kube.validation import FieldError, annotation_errors, invalid, label_errors, not_supported
from webhooks.garden.common.write import Mutation, Rule, Write
from webhooks.rules.shapes import child

GARDEN = "garden"
"""Namespace of the operators."""
_LONGEST_LABEL = 253 + len("/") + 63


def set_annotation(obj: Object, name: str, value: str) -> None:
    child(child(obj, "metadata"), "annotations")[name] = value


def set_labels(obj: Object, wanted: Iterable[str], *, prefixes: tuple[str, ...]) -> None:
    """Replace all labels with these prefixes by the wanted ones, with value `true`.

    Names that are no valid labels are left out: another rule refuses the field that they come from.
    """
    before = labels(obj)
    after = {name: value for name, value in before.items() if not name.startswith(prefixes)}
    for name in sorted(set(wanted)):
        if len(name) <= _LONGEST_LABEL and _is_label(name):
            after[name] = "true"
    if after != before:
        child(obj, "metadata")["labels"] = after


@lru_cache(maxsize=1024)
def _is_label(name: str) -> bool:
    return not label_name_problems(name)


def metadata_errors(metadata: Object, path: str) -> Iterator[FieldError]:
    """Check labels and annotations of a template, as the API server checks those of objects."""
    yield from label_errors(f"{path}.labels", string_map(metadata.get("labels")))
    yield from annotation_errors(f"{path}.annotations", string_map(metadata.get("annotations")))


def seed_labels(*paths: tuple[str, ...]) -> Mutation:
    """Maintain the labels by which clients find objects of a Seed, for each Seed that one of the paths names."""

    def mutate(write: Write) -> None:
        # The status in the body of a PUT may be missing or outdated.
        names = [text(at(write.old if path[0] == "status" else write.new, *path)) for path in paths]
        wanted = [keys.SEED_LABEL_PREFIX + name for name in names if name]
        set_labels(write.new, wanted, prefixes=(keys.SEED_LABEL_PREFIX,))

    return mutate


def set_creator(write: Write) -> None:
    """Record the creator of the object, for `mutations`."""
    if write.is_create:
        set_annotation(write.new, keys.CREATED_BY, write.user.name)


def creator_stays(write: Write) -> Iterator[FieldError]:
    """Rule for `changes`."""
    before, now = (annotations(obj).get(keys.CREATED_BY) for obj in (write.old, write.new))
    if before is not None and now != before:
        yield invalid("metadata.annotations", now, f"annotation {keys.CREATED_BY}: field is immutable")


def created_by(write: Write) -> None:
    """Record the creator of the object permanently, for `mutations`."""
    set_creator(write)
    if write.is_update and (creator := annotations(write.old).get(keys.CREATED_BY)) is not None:
        set_annotation(write.new, keys.CREATED_BY, creator)


def frozen_in_deletion(write: Write) -> Iterator[FieldError]:
    """Rule for `changes`: the spec is immutable while the object waits for its finalizers."""
    if write.is_deleting and write.changed("spec"):
        yield invalid("spec", write.spec, "field is immutable: the object is being deleted")


def allowed_operations(*operations: str) -> Rule:
    """Rule for `checks`: permitted values of the operation annotation."""

    def check(write: Write) -> Iterator[FieldError]:
        operation = annotations(write.new).get(keys.OPERATION)
        if operation and operation not in operations:
            path = f"metadata.annotations[{keys.OPERATION}]"
            yield not_supported(path, operation, sorted(operations))

    return check


def operation_not_overwritten(write: Write) -> Iterator[FieldError]:
    """Rule for `changes`: another operation may not replace an unfinished one."""
    before, now = annotations(write.old).get(keys.OPERATION), annotations(write.new).get(keys.OPERATION)
    if before and now and before != now:
        path = f"metadata.annotations[{keys.OPERATION}]"
        yield invalid(path, now, f'must not overwrite operation "{before}" with "{now}"')


def in_garden(write: Write) -> Iterator[FieldError]:
    """Rule for `checks`: only operators have such objects."""
    if write.namespace != GARDEN:
        yield invalid("metadata.namespace", write.namespace, f"namespace must be {GARDEN}")
