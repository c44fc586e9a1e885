"""Tolerations of Seeds' taints, as Projects allow them: by key alone, or by key and value."""

from collections.abc import Iterator, Sequence

from gardener import keys
from kube.objects import Object, text
from kube.validation import FieldError, duplicate, forbidden, required
from webhooks.rules.shapes import child, items


def pair(toleration: Object) -> tuple[str, str]:
    """Key and value; empty if there is no value."""
    return text(toleration.get("key")), text(toleration.get("value"))


def list_errors(path: str, tolerations: Sequence[Object], *, are_taints: bool = False) -> Iterator[FieldError]:
    """Require a key, and refuse duplicates: a toleration without value covers all of its key."""
    seen: set[tuple[str, str]] = set()
    for index, toleration in enumerate(tolerations):
        key, value = pair(toleration)
        if not key:
            yield required(f"{path}[{index}].key")
        if (key, value) in seen or (not are_taints and (key, "") in seen):
            yield duplicate(f"{path}[{index}]", f"{key}={value}" if value else key)
        seen.add((key, value))


def not_allowed(path: str, tolerations: Sequence[Object], whitelist: Sequence[Object]) -> Iterator[FieldError]:
    allowed = {pair(each) for each in whitelist}
    for index, toleration in enumerate(tolerations):
        key, value = pair(toleration)
        if (key, "") not in allowed and (key, value) not in allowed:
            listed = " ".join(sorted(f"{k}={v}" if v else k for k, v in allowed))
            detail = f"only the following tolerations are allowed: [{listed}]"
            yield forbidden(f"{path}[{index}]", detail)


def tolerate_protection(tolerations: list[Object]) -> None:
    """Add the toleration of protected Seeds, unless it exists without value."""
    if not any(pair(each) == (keys.PROTECTED_TAINT, "") for each in tolerations):
        tolerations.append({"key": keys.PROTECTED_TAINT})


def add_protection(spec: Object) -> None:
    """Tolerate protected Seeds, for the Project of the operators."""
    for name in ("defaults", "whitelist"):
        tolerate_protection(items(child(spec, "tolerations"), name))
