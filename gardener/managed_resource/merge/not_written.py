"""Fields of a manifest that a merge does not write, since the live object's value is kept: reported as warnings.

A value of the manifest that differs in the result was overridden by a rule of this package. Fields that the user has
left to others are not reported: replicas, resources, ignored and injected fields.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from gardener.managed_resource.ignored_fields import Pointer, with_live_fields
from kube.differences import path_text
from kube.merge.filled_in import written_by
from kube.merge.options import MergeOptions
from kube.merge.workloads import RESTARTED_AT
from kube.objects import Object, finalizers, is_deleting
from kube.paths import at, mappings_at
from kube.quantities import parse_quantity

NOT_CHANGED = '" is not changed: '
"""Part of each text, after the path of the field."""
_RECREATED = "and it is recreated"
_REMEDIES = {
    ("StatefulSet", "spec.volumeClaimTemplates"): (
        f"it is immutable, so undo the change, or delete the StatefulSet with --cascade=orphan, {_RECREATED}"
    ),
    ("Service", "spec.clusterIP"): f"it is immutable, so remove it, or delete the Service, {_RECREATED}",
    ("Job", "spec.selector"): f"it is immutable, so remove it, or delete the Job, {_RECREATED}",
    ("ClusterRole", "rules"): "Kubernetes derives it from the aggregationRule, so remove one of the two",
}
_INJECTED = frozenset(
    {"APIService", "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
)
"""Kinds of which only injected fields are kept."""
_OTHERS = "other clients write it, so remove it, or change the live object"
_MOST_PAIRS = 50_000
"""Maximum number of differing values that are compared: items of lists with all others, and their content again."""
_CLAIMS = ("spec", "volumeClaimTemplates")


def not_written(
    manifest: Object, merged: Object, live: Object, options: MergeOptions, *, ignored: Sequence[Pointer] = ()
) -> list[str]:
    """Texts such as `field "spec.clusterIP" is not changed: …`, without values.

    Args: merged: the result of the merge with the live object.
    """
    kind = str(manifest.get("kind") or "")
    if kind in _INJECTED:
        return list(_of_finalizers(manifest, live))
    wanted = with_live_fields(manifest, merged, ignored)
    wanted = {name: value for name, value in wanted.items() if name not in ("metadata", "status")}
    found = (path for path in _overridden(wanted, merged, iter(range(_MOST_PAIRS))) if not _is_left(path, options))
    paths = dict.fromkeys(_field(kind, path_text(path)) for path in found)
    if kind == "StatefulSet" and not at(manifest, *_CLAIMS) and at(merged, *_CLAIMS):
        paths["spec.volumeClaimTemplates"] = None
    texts = [f'field "{path}{NOT_CHANGED}{_REMEDIES.get((kind, path), _OTHERS)}' for path in paths]
    return [*texts, *_of_finalizers(manifest, live), *_of_pull_secrets(kind, wanted, merged, live, options)]


def _field(kind: str, path: str) -> str:
    """The field of a rule, instead of a field inside of it."""
    return next((name for of, name in _REMEDIES if of == kind and path.startswith(f"{name}.")), path)


def _overridden(
    wanted: Object, merged: Object, pairs: Iterator[int], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    for name, value in wanted.items():
        present = merged.get(name)
        if isinstance(value, dict) and isinstance(present, dict):
            yield from _overridden(value, present, pairs, (*path, name))
        elif not _is_contained(value, present, pairs):
            yield (*path, name)


def _is_contained(wanted: Any, present: Any, pairs: Iterator[int]) -> bool:
    """Whether a value is contained in another one, which may have further defaults; an empty one always is.

    Args: pairs: limits comparisons; once it is exhausted, values count as different.
    """
    if wanted == present or wanted is None or wanted in ("", [], {}):
        return True
    if next(pairs, None) is None:
        return False
    if isinstance(wanted, dict) and isinstance(present, dict):
        return all(_is_contained(value, present.get(name), pairs) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(present, list):
        if len(wanted) == len(present) and all(map(_is_contained, wanted, present, repeat(pairs))):
            return True
        return all(any(_is_contained(item, other, pairs) for other in present) for item in wanted)
    return _is_same_quantity(wanted, present)


def _is_same_quantity(wanted: Any, present: Any) -> bool:
    try:
        return parse_quantity(str(wanted)) == parse_quantity(str(present))
    except ValueError:
        return False


def _is_left(path: tuple[str, ...], options: MergeOptions) -> bool:
    """Whether the user has left the field to others, or the later one of two values counts."""
    if path == ("spec", "replicas"):
        return options.preserve_replicas
    return path[-1] == RESTARTED_AT or (options.preserve_resources and path[-1] == "containers")


def _of_finalizers(manifest: Object, live: Object) -> Iterator[str]:
    missing = [name for name in finalizers(manifest) if name not in finalizers(live)]
    if missing and not is_deleting(live):
        reason = f"it is only written at creation, so add {', '.join(missing)} to the live object, or remove it"
        yield f'field "metadata.finalizers{NOT_CHANGED}{reason}'


def _of_pull_secrets(kind: str, wanted: Object, merged: Object, live: Object, options: MergeOptions) -> Iterator[str]:
    """Report of kept pull secrets: the API server does not record who added which."""
    if kind != "ServiceAccount" or not written_by(options.field_manager, live, "f:imagePullSecrets"):
        return
    names = {each.get("name") for each in mappings_at(wanted, "imagePullSecrets")}
    more = [str(each.get("name")) for each in mappings_at(merged, "imagePullSecrets") if each.get("name") not in names]
    if more:
        reason = (
            f"other clients may have added {', '.join(more)}, so remove that from the live object if you don't need it"
        )
        yield f'field "imagePullSecrets{NOT_CHANGED}{reason}'
