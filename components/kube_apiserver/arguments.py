"""The command line of the API server of a Shoot.

Settings unknown to a version of Kubernetes are left out; see `kubernetes_versions`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from components.control_plane import CIPHER_SUITES, feature_gates_argument, runtime_config_argument
from components.kube_apiserver import files, plugins
from components.kube_apiserver.values import PORT, Values
from components.kubernetes_versions import STRUCTURED_AUTHENTICATION, known_apis, known_features
from gardener.garden.versions import Version
from gardener.tenant_files.reading import decoded
from kube.objects import mapping, mappings, string_map, text, texts

CERTIFICATES = "/srv/kubernetes"
AUDIT_DIRECTORY = "/etc/kubernetes/audit"
ENCRYPTION_DIRECTORY = "/etc/kubernetes/etcd-encryption-secret"
AUTHENTICATION_DIRECTORY = "/etc/kubernetes/structured/authentication"
OIDC_DIRECTORY = f"{CERTIFICATES}/oidc"
WITHOUT_WORKERS = (
    "apps/v1",
    "autoscaling/v2",
    "batch/v1",
    "policy/v1/poddisruptionbudgets",
    "storage.k8s.io/v1/csidrivers",
    "storage.k8s.io/v1/csinodes",
)
"""APIs that only serve pods: disabled in a Shoot without workers, unless it enables them."""
KUBELET_DIRECTORY, KUBELET_AUTHORITY_DIRECTORY = f"{CERTIFICATES}/apiserver-kubelet", f"{CERTIFICATES}/ca-kubelet"
_KUBELETS = (
    "--allow-privileged=true",
    "--kubelet-preferred-address-types=InternalIP,Hostname,ExternalIP",
    f"--kubelet-certificate-authority={KUBELET_AUTHORITY_DIRECTORY}/bundle.crt",
    f"--kubelet-client-certificate={KUBELET_DIRECTORY}/tls.crt",
    f"--kubelet-client-key={KUBELET_DIRECTORY}/tls.key",
)
"""Access to kubelets, and permission of privileged containers."""
_EGRESS = f"{files.EGRESS_DIRECTORY}/{files.EGRESS_FILE}"
_AUDIENCES = ("kubernetes", "gardener")


def arguments(values: Values) -> list[str]:
    return [
        *_users(values),
        *_identity(values),
        *_storage(values),
        *_serving(values),
        *_limits(values),
        *_auditing(values),
        *_admission(values),
        f"--encryption-provider-config={ENCRYPTION_DIRECTORY}/{files.ENCRYPTION_FILE}",
        *([f"--advertise-address={values.advertised}"] if values.advertised else []),
        f"--service-account-signing-key-file={CERTIFICATES}/service-account-key/id_rsa",
        f"--service-account-key-file={CERTIFICATES}/service-account-key-bundle/bundle.key",
        f"--authorization-mode={'Node,RBAC' if values.has_workers else 'RBAC'}",
        *([f"--egress-selector-config-file={_EGRESS}"] if values.has_tunnel else []),
        *(_KUBELETS if values.has_workers else ()),
    ]


def runtime_config(values: Values) -> dict[str, bool]:
    """Enabled and disabled APIs, by group and version."""
    return apis(values.setting("runtimeConfig"), values.kubernetes, has_workers=values.has_workers)


def apis(given: object, kubernetes: Version, *, has_workers: bool) -> dict[str, bool]:
    """Same as `runtime_config`. Args: given: `runtimeConfig` of the Shoot."""
    off = {} if has_workers else dict.fromkeys(WITHOUT_WORKERS, False)
    return known_apis(off | mapping(given), kubernetes)


def is_structured(values: Values) -> bool:
    """Whether structured authentication is configured and supported by the version."""
    return bool(values.authentication) and values.kubernetes[:2] >= STRUCTURED_AUTHENTICATION


def has_oidc_authority(values: Values) -> bool:
    return bool(values.setting("oidcConfig").get("caBundle"))


def issuer(values: Values) -> str:
    """Issuer of tokens."""
    return issuer_of(values.settings, host=values.host)


def issuer_of(settings: Mapping[str, Any], *, host: str) -> str:
    """Args: settings: `spec.kubernetes.kubeAPIServer` of the Shoot. host: of its API server, in the internal domain."""
    return text(mapping(settings.get("serviceAccountConfig")).get("issuer")) or f"https://{host}"


# --- authentication


def _users(values: Values) -> Iterator[str]:
    if not _says_who_is_anonymous(values):
        yield f"--anonymous-auth={_flag(values.settings.get('enableAnonymousAuthentication'))}"
    given = texts(values.settings.get("apiAudiences"))
    audiences = [*given, *(each for each in _AUDIENCES[1:] if each not in given)] if given else _AUDIENCES
    yield f"--api-audiences={','.join(audiences)}"
    yield f"--client-ca-file={CERTIFICATES}/ca-client/bundle.crt"
    yield "--enable-aggregator-routing=true"
    yield "--enable-bootstrap-token-auth=true"
    if is_structured(values):
        yield f"--authentication-config={AUTHENTICATION_DIRECTORY}/{files.AUTHENTICATION_FILE}"
    else:
        yield from _oidc(values)


def _says_who_is_anonymous(values: Values) -> bool:
    """Whether the file configures anonymous access: then an API server does not start with the flag."""
    if not is_structured(values):
        return False
    return mapping(decoded(values.authentication)).get("anonymous") is not None


_OIDC = (
    ("oidc-issuer-url", "issuerURL"),
    ("oidc-client-id", "clientID"),
    ("oidc-username-claim", "usernameClaim"),
    ("oidc-groups-claim", "groupsClaim"),
    ("oidc-username-prefix", "usernamePrefix"),
    ("oidc-groups-prefix", "groupsPrefix"),
)


def _oidc(values: Values) -> Iterator[str]:
    config = values.setting("oidcConfig")
    if not config:
        return
    if has_oidc_authority(values):
        yield f"--oidc-ca-file={OIDC_DIRECTORY}/{files.OIDC_CA_FILE}"
    yield from (f"--{flag}={config[field]}" for flag, field in _OIDC if config.get(field))
    if algorithms := texts(config.get("signingAlgs")):
        yield f"--oidc-signing-algs={','.join(algorithms)}"
    yield from (f"--oidc-required-claim={claim}={value}" for claim, value in _sorted(config.get("requiredClaims")))


def _sorted(value: object) -> Iterable[tuple[str, str]]:
    return sorted(string_map(value).items())


# --- identity and APIs


def _identity(values: Values) -> Iterator[str]:
    yield "--etcd-servers-overrides=/events#https://etcd-events-client:2379"
    yield f"--external-hostname={values.host}"
    for flag, field in (
        ("default-not-ready-toleration-seconds", "defaultNotReadyTolerationSeconds"),
        ("default-unreachable-toleration-seconds", "defaultUnreachableTolerationSeconds"),
    ):
        if (seconds := values.settings.get(field)) is not None:
            yield f"--{flag}={seconds}"
    yield f"--event-ttl={values.settings.get('eventTTL') or '1h0m0s'}"
    yield f"--proxy-client-cert-file={CERTIFICATES}/aggregator/tls.crt"
    yield f"--proxy-client-key-file={CERTIFICATES}/aggregator/tls.key"
    yield f"--requestheader-client-ca-file={CERTIFICATES}/ca-front-proxy/bundle.crt"
    yield "--requestheader-extra-headers-prefix=X-Remote-Extra-"
    yield "--requestheader-group-headers=X-Remote-Group"
    yield "--requestheader-username-headers=X-Remote-User"
    yield from feature_gates_argument(known_features(values.setting("featureGates"), values.kubernetes))
    yield from runtime_config_argument(runtime_config(values))
    yield from _service_accounts(values)
    yield f"--service-cluster-ip-range={values.service_network}"
    yield f"--secure-port={PORT}"
    yield f"--token-auth-file={CERTIFICATES}/token/static_tokens.csv"


def _service_accounts(values: Values) -> Iterator[str]:
    """Arguments of issuers: the first one signs, all are accepted, so that tokens of a former issuer stay valid."""
    config = values.setting("serviceAccountConfig")
    issuers = (issuer(values), *texts(config.get("acceptedIssuers")), f"https://{values.host}")
    yield from (f"--service-account-issuer={each}" for each in dict.fromkeys(issuers))
    if longest := text(config.get("maxTokenExpiration")):
        yield f"--service-account-max-token-expiration={longest}"
    if config.get("extendTokenExpiration") is not None:
        yield f"--service-account-extend-token-expiration={_flag(config['extendTokenExpiration'])}"


def _storage(values: Values) -> Iterator[str]:
    yield "--http2-max-streams-per-connection=1000"
    yield f"--etcd-cafile={CERTIFICATES}/etcd/ca/bundle.crt"
    yield f"--etcd-certfile={CERTIFICATES}/etcd/client/tls.crt"
    yield f"--etcd-keyfile={CERTIFICATES}/etcd/client/tls.key"
    yield "--etcd-servers=https://etcd-main-client:2379"
    caches = values.setting("watchCacheSizes")
    if caches.get("default") is not None:
        yield f"--default-watch-cache-size={caches['default']}"
    if sizes := [_watch_cache(each) for each in mappings(caches.get("resources"))]:
        yield f"--watch-cache-sizes={','.join(sizes)}"


def _watch_cache(size: dict[str, object]) -> str:
    group = f".{size['apiGroup']}" if size.get("apiGroup") else ""
    return f"{size.get('resource')}{group}#{size.get('size')}"


def _serving(_: Values) -> Iterator[str]:
    yield "--livez-grace-period=1m"
    yield "--profiling=false"
    yield "--shutdown-delay-duration=15s"
    yield f"--tls-cert-file={CERTIFICATES}/apiserver/tls.crt"
    yield f"--tls-private-key-file={CERTIFICATES}/apiserver/tls.key"
    yield f"--tls-cipher-suites={CIPHER_SUITES}"


# --- limits, auditing and admission


def _limits(values: Values) -> Iterator[str]:
    for flag, field in (
        ("max-requests-inflight", "maxNonMutatingInflight"),
        ("max-mutating-requests-inflight", "maxMutatingInflight"),
    ):
        if (most := values.setting("requests").get(field)) is not None:
            yield f"--{flag}={most}"


def _auditing(values: Values) -> Iterator[str]:
    logged = values.setting("logging")
    if logged.get("verbosity") is not None:
        yield f"--v={logged['verbosity']}"
    if logged.get("httpAccessVerbosity") is not None:
        yield f"--vmodule=httplog={logged['httpAccessVerbosity']}"
    yield f"--audit-policy-file={AUDIT_DIRECTORY}/{files.AUDIT_POLICY_FILE}"
    yield "--audit-log-path=/tmp/audit/audit.log"
    yield "--audit-log-maxsize=100"
    yield "--audit-log-maxbackup=5"


def _admission(values: Values) -> Iterator[str]:
    yield f"--enable-admission-plugins={','.join(plugins.enabled(values))}"
    if off := plugins.disabled(values):
        yield f"--disable-admission-plugins={','.join(off)}"
    yield f"--admission-control-config-file={files.ADMISSION_DIRECTORY}/{files.ADMISSION_FILE}"


def _flag(value: object) -> str:
    return "true" if value is True else "false"
