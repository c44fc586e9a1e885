"""Plain functions over Kubernetes objects, which are dicts as decoded from JSON.

Read access never raises, for any JSON: `labels({"metadata": {"labels": "boom"}})` is an empty mapping. Not every kind
has a schema, and one odd object must not stop the watch of all others; so projections read fields by `mapping`,
`mappings`, `text` and `integer`, which treat values of another type as absent. Objects from caches are shared; nothing
here changes its argument.
"""

import sys
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

Object = dict[str, Any]

DEFAULT_NAMESPACE = "default"
_LONGEST_VERSION = 20
"""Digits of an unsigned 64-bit number."""
_TRUTHY = frozenset({"1", "t", "T", "true", "TRUE", "True"})


class Key(NamedTuple):
    """Namespace and name; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(name: Key | str) -> Key:
    """Key of an object; a cluster-scoped one may be given by its name alone."""
    return Key("", name) if isinstance(name, str) else name


def mapping(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[Object]:
    """Objects in a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def texts(value: Any) -> list[str]:
    """Strings in a list."""
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def integer(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def string_map(value: Any) -> dict[str, str]:
    """Entries of a mapping whose values are strings; null counts as the empty string, as in Go."""
    if not isinstance(value, dict):
        return {}
    for entry in value.values():
        if not isinstance(entry, str):
            return {name: entry or "" for name, entry in value.items() if entry is None or isinstance(entry, str)}
    return value


def spec(obj: Mapping[str, Any]) -> Object:
    return mapping(obj.get("spec"))


def metadata(obj: Mapping[str, Any]) -> Object:
    return mapping(obj.get("metadata"))


def key(obj: Mapping[str, Any]) -> Key:
    meta = metadata(obj)
    return Key(text(meta.get("namespace")), text(meta.get("name")))


def labels(obj: Mapping[str, Any]) -> dict[str, str]:
    return string_map(metadata(obj).get("labels"))


def annotations(obj: Mapping[str, Any]) -> dict[str, str]:
    return string_map(metadata(obj).get("annotations"))


def finalizers(obj: Mapping[str, Any]) -> list[str]:
    return texts(metadata(obj).get("finalizers"))


def uid(obj: Mapping[str, Any]) -> str:
    return text(metadata(obj).get("uid"))


def resource_version(obj: Mapping[str, Any]) -> int:
    """The resourceVersion as a number, 0 if absent; newer objects have greater ones."""
    version = text(metadata(obj).get("resourceVersion"))
    return int(version) if version.isdecimal() and len(version) <= _LONGEST_VERSION else 0


def is_deleting(obj: Mapping[str, Any]) -> bool:
    return bool(metadata(obj).get("deletionTimestamp"))


def object_key(group: str, kind: str, namespace: str, name: str) -> str:
    """Return `apps/Deployment/ns/name`; cluster-scoped kinds other than Namespaces get the default namespace."""
    if not namespace and kind != "Namespace":
        namespace = DEFAULT_NAMESPACE
    # Each key is kept in many places, for as long as the object is managed: all of them share one string.
    return sys.intern(f"{group}/{kind}/{namespace}/{name}")


def group_of(api_version: str) -> str:
    """Group of an apiVersion; the core group is the empty string."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def condition(obj: Mapping[str, Any], condition_type: str) -> Object | None:
    found = mapping(obj.get("status")).get("conditions")
    if isinstance(found, list):
        # Hot path: do not build a list of the mappings.
        for each in found:
            if isinstance(each, dict) and each.get("type") == condition_type:
                return each
    return None


def is_truthy(value: str | None) -> bool:
    """Whether Go's strconv.ParseBool returns true; everything else, also None, is false."""
    return value in _TRUTHY


# --- selectors


def matches_label_selector(selector: Mapping[str, Any] | None, having: Mapping[str, str]) -> bool:
    """Whether a metav1.LabelSelector selects these labels: None selects nothing, an empty one everything.

    Raises: ValueError: for an unknown operator.
    """
    if selector is None:
        return False
    if any(having.get(name) != value for name, value in string_map(selector.get("matchLabels")).items()):
        return False
    return all(
        matches_expression(having, text(each.get("key")), each.get("operator"), _listed(each.get("values")))
        for each in mappings(selector.get("matchExpressions"))
    )


def _listed(values: Any) -> Collection[str]:
    """Values without a copy: there may be many, for each compared object, and a non-text value matches no label."""
    return values if isinstance(values, list) else ()


def matches_expression(having: Mapping[str, str], name: str, operator: Any, values: Collection[str]) -> bool:
    """Whether labels match one expression of a selector. Raises ValueError for an unknown operator."""
    match operator:
        case "In":
            return name in having and having[name] in values
        case "NotIn":
            return name not in having or having[name] not in values
        case "Exists":
            return name in having
        case "DoesNotExist":
            return name not in having
        case _:
            raise ValueError(f'"{operator or ""}" is not a valid label selector operator')


def label_selector_text(match_labels: Mapping[str, str]) -> str:
    """Query parameter form of a map of labels, in a stable order."""
    return ",".join(f"{name}={value}" for name, value in sorted(match_labels.items()))


def selector_text(selector: Mapping[str, Any]) -> str:
    """Query parameter form of a metav1.LabelSelector, sorted by labels.

    Raises: ValueError: for an unknown operator.
    """
    requirements = [(name, f"{name}={value}") for name, value in string_map(selector.get("matchLabels")).items()]
    requirements += [
        (text(each.get("key")), _requirement(text(each.get("key")), each.get("operator"), texts(each.get("values"))))
        for each in mappings(selector.get("matchExpressions"))
    ]
    return ",".join(requirement for _, requirement in sorted(requirements))


def _requirement(name: str, operator: Any, values: Collection[str]) -> str:
    match operator:
        case "In" | "NotIn":
            return f"{name} {operator.lower()} ({','.join(sorted(values))})"
        case "Exists":
            return name
        case "DoesNotExist":
            return f"!{name}"
        case _:
            raise ValueError(f'"{operator or ""}" is not a valid label selector operator')


# --- owner references


def controller_of(obj: Mapping[str, Any]) -> Object | None:
    """Owner reference with `controller: true`, if there is one."""
    return next((r for r in mappings(metadata(obj).get("ownerReferences")) if r.get("controller")), None)


# --- deletion


_MOST_NAMED = 20
"""Maximum number of finalizers in a text."""
_REMAINING = ("NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionDiscoveryFailure")


def held_by(obj: Object) -> str:
    """Description of what an object that is being deleted waits for."""
    names = finalizers(obj)
    if obj.get("kind") == "Namespace":
        remaining = [
            found.get("message") or ""
            for kind in _REMAINING
            if (found := condition(obj, kind)) and found.get("status") == "True"
        ]
        return " ".join(remaining) or "waits until all its objects are deleted"
    if names == ["foregroundDeletion"]:
        return "waits until the objects that it owns are deleted"
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"waits for {', '.join(names[:_MOST_NAMED])}{more}" if names else "waits for the end of its deletion"
