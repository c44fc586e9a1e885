"""Versions of Kubernetes: they rise, by one minor version at a time, and pools are not ahead of the control plane."""

from collections.abc import Iterator

from gardener.garden.versions import Version, parse_version
from kube.validation import FieldError, forbidden, invalid
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot.parts import VERSION, kubernetes_version, own_version, pools_of, stored_pools

_SKEW_SINCE = (1, 28)
"""From then on kubelet may be three minor versions behind; two before."""


def versions(write: Write) -> Iterator[Finding]:
    """For `checks`."""
    kubernetes = write.spec.get("kubernetes") or {}
    given = kubernetes.get("version") or ""
    control_plane = parse_version(given)
    if given and control_plane is None:
        yield invalid(VERSION, given, "must be a version such as 1.30.5")
    for pool in pools_of(write):
        own = own_version(pool.worker)
        if not own:
            continue
        parsed = parse_version(own)
        if parsed is None:
            yield invalid(f"{pool.path}.kubernetes.version", own, "must be a version such as 1.30.5")
        elif control_plane is not None:
            yield from _skew(f"{pool.path}.kubernetes.version", parsed, control_plane)


def _skew(path: str, pool: Version, control_plane: Version) -> Iterator[FieldError]:
    most = 3 if control_plane >= _SKEW_SINCE else 2
    if pool > control_plane:
        yield forbidden(path, "kubernetes version of a pool must not be higher than that of the control plane")
    elif pool.major != control_plane.major or control_plane.minor - pool.minor > most:
        yield forbidden(
            path, f"kubernetes version of a pool must be at most {most} minor versions behind the control plane"
        )


def version_changes(write: Write) -> Iterator[Finding]:
    """For `changes`."""
    old, new = kubernetes_version(write.old_spec), kubernetes_version(write.spec)
    yield from _change(VERSION, old, new, skips=False)
    before = stored_pools(write)
    for pool in pools_of(write):
        stored = before.get(pool.worker.get("name") or "")
        if not stored:
            continue
        was, now = parse_version(own_version(stored)), parse_version(own_version(pool.worker))
        if was or now:
            yield from _change(f"{pool.path}.kubernetes.version", was or old, now or new, skips=True)


def _change(path: str, old: Version | None, new: Version | None, *, skips: bool) -> Iterator[FieldError]:
    if old is None or new is None:
        return
    if new < old:
        yield forbidden(path, "kubernetes version downgrade is not supported")
    elif not skips and (new.major, new.minor) > (old.major, old.minor + 1):
        yield forbidden(path, "kubernetes version upgrade cannot skip a minor version")
