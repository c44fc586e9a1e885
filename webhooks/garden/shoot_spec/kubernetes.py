"""Versions of Kubernetes, which rise by one minor version at a time, and settings of kubelet.

Pools are not ahead of the control plane. Kubelet has settings for all pools, and for single ones.
"""

from collections.abc import Iterator

from gardener.garden.versions import Version, is_too_far_behind, most_behind, parse_version
from kube.objects import Object, text
from kube.paths import at
from kube.quantities import parse_quantity
from kube.validation import FieldError, forbidden, invalid, not_supported
from webhooks.garden.common.amounts import duration_errors, share_problem
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import VERSION, kubernetes_version, own_version, pools_of, stored_pools


def versions(write: Write) -> Iterator[Finding]:
    """Rule for `checks`."""
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
    if pool > control_plane:
        yield forbidden(path, "kubernetes version of a pool must not be higher than that of the control plane")
    elif is_too_far_behind(pool, control_plane):
        most = most_behind(control_plane)
        yield forbidden(
            path, f"kubernetes version of a pool must be at most {most} minor versions behind the control plane"
        )


def version_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`."""
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


# --- kubelet


_HOUR = 3600.0
_NO_SWAP_SINCE = (1, 30)
"""NoSwap replaces UnlimitedSwap from this version on."""
_AT_LEAST = (("containerLogMaxFiles", 2), ("podPidsLimit", 100), ("maxPods", 0), ("evictionMaxPodGracePeriod", 0))


def kubelet_errors(write: Write) -> Iterator[Finding]:
    if kubelet := at(write.spec, "kubernetes", "kubelet"):
        yield from _kubelet_errors("spec.kubernetes.kubelet", kubelet, kubernetes_version(write.spec))


def pool_kubelet_errors(write: Write) -> Iterator[Finding]:
    for pool in pools_of(write):
        if kubelet := at(pool.worker, "kubernetes", "kubelet"):
            version = parse_version(own_version(pool.worker)) or kubernetes_version(write.spec)
            yield from _kubelet_errors(f"{pool.path}.kubernetes.kubelet", kubelet, version)


def _kubelet_errors(path: str, kubelet: Object, version: Version | None) -> Iterator[FieldError]:
    for field, least in _AT_LEAST:
        value = kubelet.get(field)
        if isinstance(value, int) and value < least:
            yield invalid(f"{path}.{field}", value, f"must be greater than or equal to {least}")
    high, low = kubelet.get("imageGCHighThresholdPercent"), kubelet.get("imageGCLowThresholdPercent")
    if isinstance(high, int) and isinstance(low, int) and low >= high:
        yield forbidden(f"{path}.imageGCLowThresholdPercent", "must be less than imageGCHighThresholdPercent")
    if (idle := kubelet.get("streamingConnectionIdleTimeout")) is not None:
        yield from duration_errors(f"{path}.streamingConnectionIdleTimeout", idle, 30.0, 4 * _HOUR)
    if (period := kubelet.get("evictionPressureTransitionPeriod")) is not None:
        yield from duration_errors(f"{path}.evictionPressureTransitionPeriod", period, 0.0, None)
    if periods := kubelet.get("evictionSoftGracePeriod"):
        for signal, period in periods.items():
            yield from duration_errors(f"{path}.evictionSoftGracePeriod.{signal}", period, 0.0, None)
    for field in ("evictionHard", "evictionSoft"):
        if amounts := kubelet.get(field):
            for signal, amount in amounts.items():
                yield from _amount_errors(f"{path}.{field}.{signal}", amount)
    if (swap := kubelet.get("memorySwap")) is not None:
        yield from _swap_errors(f"{path}.memorySwap", kubelet, swap, version)


def _amount_errors(path: str, amount: object) -> Iterator[FieldError]:
    """Check a quantity or percentage."""
    if not isinstance(amount, str):
        return
    if amount.endswith("%"):
        if problem := share_problem(amount):
            yield invalid(path, amount, problem)
        return
    try:
        is_amount = parse_quantity(amount) >= 0
    except ValueError:
        is_amount = False
    if not is_amount:
        yield invalid(path, amount, "must be a quantity such as 200Mi, or a percentage such as 5%")


def _swap_errors(path: str, kubelet: Object, swap: Object, version: Version | None) -> Iterator[FieldError]:
    if kubelet.get("failSwapOn") is not False:
        yield forbidden(path, "needs failSwapOn false")
    behavior = swap.get("swapBehavior")
    if behavior is None:
        return
    if at(kubelet, "featureGates", "NodeSwap") is not True:
        yield forbidden(path, "needs the feature gate NodeSwap")
    known = (
        ("NoSwap", "LimitedSwap") if version is None or version >= _NO_SWAP_SINCE else ("LimitedSwap", "UnlimitedSwap")
    )
    if behavior not in known:
        yield not_supported(f"{path}.swapBehavior", text(behavior), known)
