"""Settings of kubelet: for all pools, and for those that have their own."""

from collections.abc import Iterator

from gardener.garden.versions import Version
from kube.objects import Object, text
from kube.paths import at
from kube.quantities import parse_quantity
from kube.validation import FieldError, forbidden, invalid, not_supported
from webhooks.garden.common.durations import duration_errors
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.shares import share_problem
from webhooks.garden.common.write import Write
from webhooks.garden.shoot.parts import kubernetes_version, pools_of

_HOUR = 3600.0
_NO_SWAP_SINCE = (1, 30)
"""Instead of UnlimitedSwap."""
_AT_LEAST = (("containerLogMaxFiles", 2), ("podPidsLimit", 100), ("maxPods", 0), ("evictionMaxPodGracePeriod", 0))


def kubelet_errors(write: Write) -> Iterator[Finding]:
    if kubelet := at(write.spec, "kubernetes", "kubelet"):
        yield from _kubelet_errors("spec.kubernetes.kubelet", kubelet, kubernetes_version(write.spec))


def pool_kubelet_errors(write: Write) -> Iterator[Finding]:
    for pool in pools_of(write):
        if kubelet := at(pool.worker, "kubernetes", "kubelet"):
            yield from _kubelet_errors(f"{pool.path}.kubernetes.kubelet", kubelet, kubernetes_version(write.spec))


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
    """A quantity, or a percentage."""
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
