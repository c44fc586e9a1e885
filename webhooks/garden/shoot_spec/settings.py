"""Settings of a Shoot and of the components of its cluster, each on its own."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from gardener.garden.certificates import bundle_errors
from gardener.garden.rotations import COMPLETED, ENCRYPTION_KEY
from gardener.garden.rotations import phase as phase_of
from gardener.garden.versions import Version
from kube.addresses import parse_cidr
from kube.names import dns_subdomain_problems
from kube.objects import Object, text, texts
from kube.paths import at
from kube.validation import (
    FieldError,
    duplicates,
    forbidden,
    invalid,
    invalid_for,
    label_selector_errors,
    required,
)
from webhooks.garden.common.amounts import duration_errors
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import (
    encrypted_resources,
    is_to_hibernate,
    kubernetes_version,
    most_pods,
    pools_of,
    project_name,
    status,
    workers_of,
)
from webhooks.garden.shoot_spec.workers import taint_key_errors

LONGEST_NAMES = 21
_HOUR = 3600.0
_SMALLEST_MASK, _LARGEST_MASK = 16, 28
_ANYTHING = 1e-9
"""Minimum in seconds of durations that must not be zero."""
_SERVER = "spec.kubernetes.kubeAPIServer"
_OIDC = f"{_SERVER}.oidcConfig"
_DURATIONS: tuple[tuple[str, str, dict[str, tuple[float, float | None]]], ...] = (
    ("kubeAPIServer", "", {"eventTTL": (0.0, 168 * _HOUR)}),
    ("kubeAPIServer", "serviceAccountConfig", {"maxTokenExpiration": (720 * _HOUR, 2160 * _HOUR)}),
    (
        "kubeControllerManager",
        "",
        dict.fromkeys(("podEvictionTimeout", "nodeMonitorGracePeriod"), (_ANYTHING, None)),
    ),
    (
        "kubeControllerManager",
        "horizontalPodAutoscaler",
        {
            **dict.fromkeys(("cpuInitializationPeriod", "downscaleStabilization", "syncPeriod"), (1.0, None)),
            "initialReadinessDelay": (_ANYTHING, None),
        },
    ),
    ("clusterAutoscaler", "", dict.fromkeys(("maxNodeProvisionTime", "newPodScaleUpDelay"), (0.0, None))),
    (
        "verticalPodAutoscaler",
        "",
        dict.fromkeys(("evictAfterOOMThreshold", "recommenderInterval", "updaterInterval"), (0.0, None)),
    ),
)
"""Permitted seconds of fields, by component below `spec.kubernetes` and part of it."""
_OF_POOLS = ("maxNodeProvisionTime", "scaleDownUnneededTime", "scaleDownUnreadyTime")
"""Durations of the cluster autoscaler."""
_TAINTS = ("ignoreTaints", "startupTaints", "statusTaints")
_STRUCTURED_SINCE = (1, 30)
_STRUCTURED_AUTHENTICATION = "StructuredAuthenticationConfiguration"
_NO_STATIC_TOKEN_SINCE = (1, 27)


def name_length(write: Write) -> Iterator[Finding]:
    """The names of project and Shoot are short enough together: both are part of names in clouds."""
    project = project_name(write) if write.is_create else ""
    if project and len(project) + len(write.name) > LONGEST_NAMES:
        yield Denial(
            f"the length of the shoot name and the project name must not exceed {LONGEST_NAMES} characters"
            f" (project: {project}; shoot: {write.name})",
            "metadata.name",
        )


def general_errors(write: Write) -> Iterator[Finding]:
    spec = write.spec
    if not spec.get("cloudProfile") and not spec.get("cloudProfileName"):
        yield required("spec.cloudProfile.name", "must specify a cloud profile")
    if spec.get("purpose") == "infrastructure" and write.namespace != "garden":
        yield forbidden("spec.purpose", "purpose infrastructure is for Shoots in the namespace garden only")
    addons: Object = spec.get("addons") or {}
    if spec.get("purpose") not in {None, "evaluation"} and any(
        at(addons, name, "enabled") is True for name in ("kubernetesDashboard", "nginxIngress")
    ):
        yield forbidden("spec.addons", "addons can be enabled for Shoots with purpose evaluation only")
    if selector := spec.get("seedSelector"):
        yield from label_selector_errors("spec.seedSelector", selector)
    for name, field in (("resources", "name"), ("extensions", "type")):
        if entries := spec.get(name):
            yield from duplicates(f"spec.{name}", [text(each.get(field)) for each in entries], field=field)
    if monitoring := spec.get("monitoring"):
        receivers = texts(at(monitoring, "alerting", "emailReceivers"))
        yield from _receiver_errors("spec.monitoring.alerting.emailReceivers", receivers)
    if ingress := addons.get("nginxIngress"):
        yield from _range_errors("spec.addons.nginxIngress.loadBalancerSourceRanges", ingress)


def _receiver_errors(path: str, receivers: list[str]) -> Iterator[FieldError]:
    for index, address in enumerate(receivers):
        if not 0 < address.find("@") < len(address) - 1:
            yield invalid(f"{path}[{index}]", address, "must be an email address")
    yield from duplicates(path, receivers)


def _range_errors(path: str, ingress: Object) -> Iterator[FieldError]:
    for index, each in enumerate(texts(ingress.get("loadBalancerSourceRanges"))):
        if parse_cidr(each) is None:
            yield invalid(f"{path}[{index}]", each, f"invalid CIDR address: {each}")


# --- components


def component_errors(write: Write) -> Iterator[Finding]:
    kubernetes: Object = write.spec.get("kubernetes") or {}
    yield from _duration_errors(kubernetes)
    tolerance = at(kubernetes, "kubeControllerManager", "horizontalPodAutoscaler", "tolerance")
    if tolerance is not None and tolerance <= 0:
        path = "spec.kubernetes.kubeControllerManager.horizontalPodAutoscaler.tolerance"
        yield invalid(path, tolerance, "must be greater than 0")
    version = kubernetes_version(write.spec)
    if kubernetes.get("enableStaticTokenKubeconfig") is True and version and version >= _NO_STATIC_TOKEN_SINCE:
        detail = "must not be true for Kubernetes 1.27 and newer; request kubeconfigs that expire"
        yield invalid("spec.kubernetes.enableStaticTokenKubeconfig", True, detail)
    if server := kubernetes.get("kubeAPIServer"):
        yield from _authentication_errors(server, version)
        yield from _token_errors(server)
    if autoscaler := kubernetes.get("clusterAutoscaler"):
        yield from _taint_errors(autoscaler)


def pool_autoscaler_errors(write: Write) -> Iterator[Finding]:
    for pool in pools_of(write):
        if own := pool.worker.get("clusterAutoscaler"):
            for field in _OF_POOLS:
                yield from duration_errors(f"{pool.path}.clusterAutoscaler.{field}", own.get(field), 0.0, None)


def _duration_errors(kubernetes: Object) -> Iterator[FieldError]:
    for component, part, durations in _DURATIONS:
        settings = kubernetes.get(component)
        if settings and part:
            settings = settings.get(part)
        if settings and not durations.keys().isdisjoint(settings):
            path = ".".join(filter(None, ("spec.kubernetes", component, part)))
            for field, (least, most) in durations.items():
                if value := settings.get(field):
                    yield from duration_errors(f"{path}.{field}", value, least, most)


def _authentication_errors(server: Object, version: Version | None) -> Iterator[FieldError]:
    oidc, path = server.get("oidcConfig"), _OIDC
    if oidc is not None:
        for field, other in (("issuerURL", "clientID"), ("clientID", "issuerURL")):
            if oidc.get(other) and not oidc.get(field):
                yield required(f"{path}.{field}", f"{field} must be set when {other} is provided")
        if issuer := text(oidc.get("issuerURL")):
            yield from _issuer_errors(f"{path}.issuerURL", issuer)
        yield from bundle_errors(f"{path}.caBundle", text(oidc.get("caBundle")))
    if server.get("structuredAuthentication") is not None:
        where = f"{_SERVER}.structuredAuthentication"
        if version is not None and version < _STRUCTURED_SINCE:
            yield forbidden(where, "is available for Kubernetes 1.30 and newer")
        if at(server, "featureGates", _STRUCTURED_AUTHENTICATION) is False:
            yield forbidden(where, f"requires the feature gate {_STRUCTURED_AUTHENTICATION}")
        if oidc is not None:
            yield forbidden(path, "is incompatible with structuredAuthentication")
    if encryption := server.get("encryptionConfig"):
        yield from _encryption_errors(f"{_SERVER}.encryptionConfig.resources", texts(encryption.get("resources")))


def _token_errors(server: Object) -> Iterator[FieldError]:
    if account := server.get("serviceAccountConfig"):
        if issuer := text(account.get("issuer")):
            yield from _issuer_errors(f"{_SERVER}.serviceAccountConfig.issuer", issuer)
        yield from _accepted_errors(f"{_SERVER}.serviceAccountConfig.acceptedIssuers", account)
    if audiences := server.get("apiAudiences"):
        yield from _audience_errors(f"{_SERVER}.apiAudiences", texts(audiences))


def _issuer_errors(path: str, issuer: str) -> Iterator[FieldError]:
    try:
        url = urlsplit(issuer)
        named = bool(url.hostname)
    except ValueError:
        yield invalid(path, issuer, "must be a URL")
        return
    if url.scheme != "https" or not named:
        yield invalid(path, issuer, "must be a URL that begins with https:// and a host")
    if url.query or url.fragment or "@" in url.netloc:
        yield invalid(path, issuer, "must not have a query, a fragment, or credentials")


def _accepted_errors(path: str, account: Object) -> Iterator[FieldError]:
    accepted, issuer = texts(account.get("acceptedIssuers")), account.get("issuer")
    yield from duplicates(path, accepted)
    for index, each in enumerate(accepted):
        if not each.strip():
            yield invalid(f"{path}[{index}]", each, "must not be empty; take it out")
        elif each == issuer:
            yield invalid(f"{path}[{index}]", each, "must not be the issuer itself")


def _audience_errors(path: str, audiences: list[str]) -> Iterator[FieldError]:
    for index, each in enumerate(audiences):
        if not each.strip():
            yield invalid(f"{path}[{index}]", each, "must not be empty; take it out")
        elif "," in each:
            yield invalid(f"{path}[{index}]", each, "audience must not contain commas")


def _encryption_errors(path: str, resources: list[str]) -> Iterator[FieldError]:
    yield from duplicates(path, [each.removesuffix(".") for each in resources])
    for index, each in enumerate(resources):
        if each in {"secrets", "secrets."}:
            yield forbidden(f"{path}[{index}]", "secrets are always encrypted")
        elif "*" in each:
            yield invalid(f"{path}[{index}]", each, "wildcards are not supported")


def rewriting_errors(write: Write) -> Iterator[Finding]:
    suffixes = at(write.spec, "systemComponents", "coreDNS", "rewriting", "commonSuffixes") or []
    path = "spec.systemComponents.coreDNS.rewriting.commonSuffixes"
    yield from duplicates(path, suffixes)
    for index, suffix in enumerate(suffixes):
        where = f"{path}[{index}]"
        yield from invalid_for(where, suffix, dns_subdomain_problems(suffix.removeprefix(".")))
        if suffix.removeprefix(".").count(".") < 1:
            yield invalid(where, suffix, "must have at least two non-empty labels")


def _taint_errors(autoscaler: Object) -> Iterator[FieldError]:
    for field in _TAINTS:
        path, taints = f"spec.kubernetes.clusterAutoscaler.{field}", texts(autoscaler.get(field))
        for index, key in enumerate(taints):
            yield from taint_key_errors(f"{path}[{index}]", key)
        yield from duplicates(path, taints)


def mask_errors(write: Write) -> Iterator[Finding]:
    """The network of the Pods has room for the networks of all nodes, and these for all Pods of a node."""
    spec, found = write.spec, workers_of(write)
    networking: Object = spec.get("networking") or {}
    mask = at(spec, "kubernetes", "kubeControllerManager", "nodeCIDRMaskSize")
    if mask is None or not found:
        return
    path, families = "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize", networking.get("ipFamilies") or ["IPv4"]
    if families == ["IPv4"] and not _SMALLEST_MASK <= mask <= _LARGEST_MASK:
        yield invalid(path, mask, f"must be between {_SMALLEST_MASK} and {_LARGEST_MASK} for IPv4")
        return
    pods, bits = most_pods(spec), 128 if families == ["IPv6"] else 32
    addresses = (1 << max(0, bits - mask)) - 2
    if addresses < pods:
        yield invalid(
            path,
            mask,
            f"the network of a node has {addresses} addresses for up to {pods} Pods; enlarge it, or reduce maxPods",
        )
    network = parse_cidr(networking.get("pods") or "")
    if network is None:
        return
    room, wanted = 1 << max(0, mask - network.prefixlen), sum([worker.get("maximum") or 0 for worker in found])
    if wanted > room:
        detail = (
            f"the network of the Pods is too small: it has room for {room} nodes, but the pools have up to {wanted}"
        )
        yield forbidden("spec.provider.workers", detail)


def encryption_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: a change of the list encrypts data again, so only one such change at a time."""
    before, now = encrypted_resources(write.old_spec), encrypted_resources(write.spec)
    if before == now:
        return
    path = f"{_SERVER}.encryptionConfig.resources"
    phase = phase_of(write.old, ENCRYPTION_KEY)
    if phase not in {"", COMPLETED}:
        yield forbidden(path, f"must not change while the rotation of etcdEncryptionKey is in phase {phase}")
    if before != set(texts(status(write.old).get("encryptedResources"))):
        yield forbidden(path, "must not change while a previous change is being rolled out")
    if is_to_hibernate(write.spec):
        yield forbidden(path, "must not change while the Shoot is hibernated")


def deprecated(write: Write) -> Iterator[str]:
    """Rule for `deprecations`."""
    if write.spec.get("cloudProfileName") and not write.spec.get("cloudProfile"):
        yield "spec.cloudProfileName is deprecated: use spec.cloudProfile"
    if write.spec.get("secretBindingName") and write.changed("spec", "secretBindingName"):
        yield "spec.secretBindingName is deprecated: use spec.credentialsBindingName"
    if at(write.spec, "kubernetes", "enableStaticTokenKubeconfig") is True:
        yield "spec.kubernetes.enableStaticTokenKubeconfig is deprecated: request kubeconfigs that expire"
