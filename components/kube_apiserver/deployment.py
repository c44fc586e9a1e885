"""The Deployment of the API server of a Shoot: its pods, and the files in them."""

from collections.abc import Iterator
from typing import NamedTuple

from components.control_plane import (
    CONTROL_PLANE,
    NOT_ROOT,
    PRIORITY,
    SEEN_BY_EXTENSIONS,
    config_map_volume,
    secret_volume,
)
from components.kube_apiserver import files
from components.kube_apiserver.arguments import (
    AUDIT_DIRECTORY,
    AUTHENTICATION_DIRECTORY,
    CERTIFICATES,
    ENCRYPTION_DIRECTORY,
    KUBELET_AUTHORITY_DIRECTORY,
    KUBELET_DIRECTORY,
    OIDC_DIRECTORY,
    arguments,
    has_oidc_authority,
    is_structured,
)
from components.kube_apiserver.values import NAME, PORT, Values
from components.parts import TO_DNS
from components.workloads import container, container_ports, deployment
from gardener import keys
from gardener.references import inject_annotations
from kube.objects import Object, key

LABELS = {"app": "kubernetes", "role": "apiserver"}
_REACHES = (
    TO_DNS,
    f"{keys.TO_NETWORKS_PREFIX}private-networks",
    f"{keys.TO_NETWORKS_PREFIX}public-networks",
    f"{keys.TO_PREFIX}all-webhook-targets",
    f"{keys.TO_PREFIX}etcd-events-client-tcp-2379",
    f"{keys.TO_PREFIX}etcd-main-client-tcp-2379",
    f"{keys.TO_PREFIX}extensions-all-webhook-targets",
)


_TO_TUNNEL = f"{keys.TO_PREFIX}vpn-seed-server-tcp-9443"
_READ_ONLY = "etcd-encryption-secret"


class Volume(NamedTuple):
    name: str
    directory: str
    source: Object


def _reaches(values: Values) -> Iterator[str]:
    yield from _REACHES
    if values.has_tunnel:
        yield _TO_TUNNEL


def its_files(values: Values) -> list[Object]:
    """ConfigMaps and Secrets created for it."""
    return [
        files.audit_policy(values),
        files.admission(values),
        files.admission_kubeconfigs(values),
        *([files.authentication(values)] if is_structured(values) else []),
        *([files.oidc_authority(values)] if _uses_oidc_authority(values) else []),
        files.encryption(values.namespace, values.encryption),
        *([files.egress(values)] if values.has_tunnel else []),
    ]


def its_deployment(values: Values) -> Object:
    made = deployment(
        NAME,
        namespace=values.namespace,
        labels={**LABELS, **CONTROL_PLANE, **SEEN_BY_EXTENSIONS, keys.HIGH_AVAILABILITY_TYPE: "server"},
        selects=LABELS,
        pod_labels={**CONTROL_PLANE, **dict.fromkeys(_reaches(values), keys.ALLOWED)},
        pod=_pod(values),
        replicas=values.running.replicas(values.least_replicas),
        minReadySeconds=30,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
    )
    return inject_annotations(made)


def _pod(values: Values) -> Object:
    volumes = list(_volumes(values))
    return {
        "automountServiceAccountToken": False,
        "priorityClassName": PRIORITY.format(500),
        "securityContext": dict(NOT_ROOT),
        "terminationGracePeriodSeconds": 30,
        "containers": [_container(values, volumes)],
        "volumes": [{"name": each.name, **each.source} for each in volumes],
    }


def _container(values: Values, volumes: list[Volume]) -> Object:
    mounts: list[Object] = [
        {"name": each.name, "mountPath": each.directory} | ({"readOnly": True} if each.name == _READ_ONLY else {})
        for each in volumes
    ]
    return container(
        NAME,
        values.image,
        cpu="250m",
        memory="500Mi",
        command=["/usr/local/bin/kube-apiserver"],
        args=arguments(values),
        ports=container_ports(https=PORT),
        livenessProbe=_probe(values, "/livez", delay=15),
        readinessProbe=_probe(values, "/readyz", delay=10),
        volumeMounts=mounts,
    )


def _probe(values: Values, path: str, *, delay: int) -> Object:
    """Probe with credentials, since anonymous requests may be refused, even to health endpoints."""
    header = {"name": "Authorization", "value": f"Bearer {values.health_token}"}
    return {
        "httpGet": {"path": path, "port": PORT, "scheme": "HTTPS", "httpHeaders": [header]},
        "initialDelaySeconds": delay,
        "timeoutSeconds": 15,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def _volumes(values: Values) -> Iterator[Volume]:
    """Volumes; only one mount is explicitly read-only, others depend on their kind."""
    secrets = values.secrets
    for name, directory, secret, is_private in (
        ("ca", "ca", secrets.ca_bundle, False),
        ("ca-client", "ca-client", secrets.ca_client_bundle, False),
        ("ca-front-proxy", "ca-front-proxy", secrets.ca_front_proxy_bundle, False),
        ("service-account-key", "service-account-key", secrets.service_account_key, True),
        ("service-account-key-bundle", "service-account-key-bundle", secrets.service_account_key_bundle, True),
        ("static-token", "token", secrets.static_token, False),
        ("kube-aggregator", "aggregator", secrets.aggregator, True),
        ("ca-etcd", "etcd/ca", secrets.ca_etcd_bundle, False),
        ("etcd-client", "etcd/client", secrets.etcd_client, True),
        ("server", "apiserver", secrets.server, True),
    ):
        yield Volume(name, f"{CERTIFICATES}/{directory}", secret_volume(secret, is_private=is_private))
    yield Volume("audit-policy-config", AUDIT_DIRECTORY, _config_map(files.audit_policy(values)))
    yield Volume("admission-config", files.ADMISSION_DIRECTORY, _config_map(files.admission(values)))
    kubeconfigs = key(files.admission_kubeconfigs(values)).name
    yield Volume("admission-kubeconfigs", files.ADMISSION_KUBECONFIGS_DIRECTORY, secret_volume(kubeconfigs))
    if is_structured(values):
        yield Volume("authentication-config", AUTHENTICATION_DIRECTORY, _config_map(files.authentication(values)))
    if _uses_oidc_authority(values):
        yield Volume("oidc-cabundle", OIDC_DIRECTORY, secret_volume(key(files.oidc_authority(values)).name))
    encryption = key(files.encryption(values.namespace, values.encryption)).name
    yield Volume(_READ_ONLY, ENCRYPTION_DIRECTORY, secret_volume(encryption, is_private=True))
    if values.has_tunnel:
        yield Volume("ca-vpn", files.TUNNEL_AUTHORITY_DIRECTORY, secret_volume(secrets.ca_vpn_bundle))
        yield Volume("http-proxy", files.TUNNEL_DIRECTORY, secret_volume(secrets.http_proxy, is_private=True))
        yield Volume("egress-selection-config", files.EGRESS_DIRECTORY, _config_map(files.egress(values)))
    if values.has_workers:
        yield Volume("ca-kubelet", KUBELET_AUTHORITY_DIRECTORY, secret_volume(secrets.ca_kubelet_bundle))
        yield Volume("kubelet-client", KUBELET_DIRECTORY, secret_volume(secrets.kubelet, is_private=True))


def _uses_oidc_authority(values: Values) -> bool:
    return has_oidc_authority(values) and not is_structured(values)


def _config_map(obj: Object) -> Object:
    return config_map_volume(key(obj).name)
