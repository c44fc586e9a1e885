"""Settings of a Shoot and of the components of its cluster, each on its own."""

from collections.abc import Iterable, Iterator

from gardener.garden.certificates import bundle_errors
from kube.addresses import parse_cidr
from kube.clock import format_duration, parse_duration
from kube.names import dns_subdomain_problems
from kube.objects import Object, mapping, mappings, text, texts
from kube.paths import at, mapping_at
from kube.validation import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    invalid_for,
    label_selector_errors,
    required,
)
from webhooks.garden.findings import Denial, Finding
from webhooks.garden.shoot.parts import Pool, differing_kubelets, kubernetes_version, pools_of, project_name
from webhooks.garden.write import Write

_LONGEST_NAMES = 21
_GENERATED = 5
"""Random characters that the API server puts behind `generateName`."""
_HOUR = 3600.0
_SERVER = "spec.kubernetes.kubeAPIServer"
_DURATIONS = (
    (("kubernetes", "kubeAPIServer", "eventTTL"), 0.0, 168 * _HOUR),
    (("kubernetes", "kubeAPIServer", "serviceAccountConfig", "maxTokenExpiration"), 720 * _HOUR, 2160 * _HOUR),
    (("kubernetes", "kubeControllerManager", "horizontalPodAutoscaler", "syncPeriod"), 1.0, None),
)
_STRUCTURED_SINCE = (1, 30)


def name_length(write: Write) -> Iterator[Finding]:
    """For `references`: both names are part of names in clouds, which are short."""
    project = project_name(write) if write.is_create else ""
    if project and len(project) + len(write.name) > _LONGEST_NAMES:
        yield Denial(
            f"the length of the shoot name and the project name must not exceed {_LONGEST_NAMES} characters"
            f" (project: {project}; shoot: {write.name})",
            "metadata.name",
        )


def general_errors(write: Write) -> Iterator[Finding]:
    spec = write.spec
    if not spec.get("cloudProfile") and not spec.get("cloudProfileName"):
        yield required("spec.cloudProfile", "must specify a cloud profile")
    if spec.get("purpose") == "infrastructure" and write.namespace != "garden":
        yield forbidden("spec.purpose", "purpose infrastructure is for Shoots in the namespace garden only")
    enabled = [name for name in ("kubernetesDashboard", "nginxIngress") if at(spec, "addons", name, "enabled") is True]
    if enabled and spec.get("purpose") not in {None, "evaluation"}:
        yield forbidden("spec.addons", "addons can be enabled for Shoots with purpose evaluation only")
    if selector := mapping(spec.get("seedSelector")):
        yield from label_selector_errors("spec.seedSelector", selector)
    for name, field in (("resources", "name"), ("extensions", "type")):
        if entries := mappings(spec.get(name)):
            yield from _duplicates(f"spec.{name}", [text(each.get(field)) for each in entries], field=f".{field}")
    for index, address in enumerate(texts(at(spec, "monitoring", "alerting", "emailReceivers"))):
        if not 0 < address.find("@") < len(address) - 1:
            yield invalid(f"spec.monitoring.alerting.emailReceivers[{index}]", address, "must be an address for mails")
    ranges = texts(at(spec, "addons", "nginxIngress", "loadBalancerSourceRanges"))
    for index, each in enumerate(ranges):
        if parse_cidr(each) is None:
            path = f"spec.addons.nginxIngress.loadBalancerSourceRanges[{index}]"
            yield invalid(path, each, f"invalid CIDR address: {each}")


def _duplicates(path: str, values: list[str], *, field: str = "") -> Iterator[FieldError]:
    for index, value in enumerate(values):
        if value in values[:index]:
            yield duplicate(f"{path}[{index}]{field}", value)


# --- components


def component_errors(write: Write) -> Iterator[Finding]:
    spec = write.spec
    for path, least, most in _DURATIONS:
        if (value := at(spec, *path)) is not None:
            yield from _duration_errors(".".join(("spec", *path)), value, least, most)
    yield from _authentication_errors(write)
    if rewriting := mapping_at(spec, "systemComponents", "coreDNS", "rewriting"):
        yield from _dns_errors(rewriting)
    yield from _mask_errors(spec, pools_of(write))


def _duration_errors(path: str, value: object, least: float, most: float | None) -> Iterator[FieldError]:
    seconds = _seconds(value)
    if seconds is None:
        return
    if seconds < least:
        yield invalid(path, text(value), f"must not be less than {format_duration(least)}")
    if most is not None and seconds > most:
        yield invalid(path, text(value), f"must not be greater than {format_duration(most)}")


def _seconds(value: object) -> float | None:
    try:
        return parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _authentication_errors(write: Write) -> Iterator[FieldError]:
    server = mapping_at(write.spec, "kubernetes", "kubeAPIServer")
    oidc, path = server.get("oidcConfig"), f"{_SERVER}.oidcConfig"
    if oidc is not None:
        for field in ("issuerURL", "clientID"):
            if not oidc.get(field):
                yield required(f"{path}.{field}", f"{field} must be set when oidcConfig is provided")
        issuer = text(oidc.get("issuerURL"))
        if issuer and not issuer.startswith("https://"):
            yield invalid(f"{path}.issuerURL", issuer, "must begin with https://")
        yield from bundle_errors(f"{path}.caBundle", text(oidc.get("caBundle")))
    if server.get("structuredAuthentication") is not None:
        path, version = f"{_SERVER}.structuredAuthentication", kubernetes_version(write.spec)
        if version is not None and version < _STRUCTURED_SINCE:
            yield forbidden(path, "is available for Kubernetes 1.30 and newer")
        if oidc is not None:
            yield forbidden(path, "must not be set together with oidcConfig")
    if account := mapping(server.get("serviceAccountConfig")):
        issuers = texts(account.get("acceptedIssuers"))
        yield from _duplicates(f"{_SERVER}.serviceAccountConfig.acceptedIssuers", issuers)
    if encryption := mapping(server.get("encryptionConfig")):
        yield from _encryption_errors(f"{_SERVER}.encryptionConfig.resources", texts(encryption.get("resources")))


def _encryption_errors(path: str, resources: list[str]) -> Iterator[FieldError]:
    yield from _duplicates(path, resources)
    for index, each in enumerate(resources):
        if each in {"secrets", "secrets."}:
            yield forbidden(f"{path}[{index}]", "secrets are always encrypted")
        elif "*" in each:
            yield invalid(f"{path}[{index}]", each, "wildcards are not supported")


def _dns_errors(rewriting: Object) -> Iterator[FieldError]:
    suffixes = texts(rewriting.get("commonSuffixes"))
    path = "spec.systemComponents.coreDNS.rewriting.commonSuffixes"
    yield from _duplicates(path, suffixes)
    for index, suffix in enumerate(suffixes):
        where = f"{path}[{index}]"
        yield from invalid_for(where, suffix, dns_subdomain_problems(suffix.removeprefix(".")))
        if suffix.removeprefix(".").count(".") < 1:
            yield invalid(where, suffix, "must have at least two non-empty labels")


def _mask_errors(spec: Object, found: list[Pool]) -> Iterator[FieldError]:
    """All nodes of all pools have a network of their own in that of the Pods."""
    mask = at(spec, "kubernetes", "kubeControllerManager", "nodeCIDRMaskSize")
    network = parse_cidr(text(at(spec, "networking", "pods")))
    if not isinstance(mask, int) or network is None:
        return
    path = "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize"
    low, high = (16, 28) if network.version == 4 else (64, 124)
    if not low <= mask <= high:
        yield invalid(path, mask, f"must be between {low} and {high} for IPv{network.version}")
        return
    room, wanted = 1 << max(0, mask - network.prefixlen), sum(worker.get("maximum") or 0 for _, worker in found)
    if wanted > room:
        detail = f"the network of the Pods has room for {room} nodes, and the pools have up to {wanted}"
        yield forbidden("spec.provider.workers", detail)


# --- kubelet


def kubelet_errors(write: Write) -> Iterator[Finding]:
    for path, kubelet in differing_kubelets(write):
        yield from _kubelet_errors(path, kubelet)


def _kubelet_errors(path: str, kubelet: Object) -> Iterator[FieldError]:
    yield from _least(path, kubelet, (("containerLogMaxFiles", 2), ("podPidsLimit", 100), ("maxPods", 1)))
    high, low = kubelet.get("imageGCHighThresholdPercent"), kubelet.get("imageGCLowThresholdPercent")
    if isinstance(high, int) and isinstance(low, int) and low >= high:
        yield forbidden(f"{path}.imageGCLowThresholdPercent", "must be less than imageGCHighThresholdPercent")
    if (idle := kubelet.get("streamingConnectionIdleTimeout")) is not None:
        yield from _duration_errors(f"{path}.streamingConnectionIdleTimeout", idle, 30.0, 4 * _HOUR)
    if at(kubelet, "memorySwap", "swapBehavior") is not None:
        swaps = kubelet.get("failSwapOn") is False and at(kubelet, "featureGates", "NodeSwap") is True
        if not swaps:
            detail = "needs failSwapOn false and the feature gate NodeSwap"
            yield forbidden(f"{path}.memorySwap.swapBehavior", detail)


def _least(path: str, parent: Object, bounds: Iterable[tuple[str, int]]) -> Iterator[FieldError]:
    for field, least in bounds:
        value = parent.get(field)
        if isinstance(value, int) and value < least:
            yield invalid(f"{path}.{field}", value, f"must be greater than or equal to {least}")
