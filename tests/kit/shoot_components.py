"""Components of a Shoot's control plane: what they depend on, but for what a test is about."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

from agent.gardenlet.shoot.main.operation import ShootOperation
from components import etcd, kube_apiserver, kube_controller_manager, kube_scheduler
from components.etcd_schedules import Schedules
from components.kube_apiserver.arguments import arguments
from kit.shoot_inputs import inputs, shoot_with
from kube.objects import Object

SECRETS = kube_apiserver.Secrets(
    ca_bundle="ca",
    ca_client_bundle="ca-client",
    ca_front_proxy_bundle="ca-front-proxy",
    ca_etcd_bundle="ca-etcd",
    etcd_client="etcd-client",
    server="server",
    aggregator="aggregator",
    service_account_key="key",
    service_account_key_bundle="keys",
    static_token="tokens",
)
OLD, NEW = kube_apiserver.Key("old", "b2xk"), kube_apiserver.Key("new", "bmV3")


def api_server(**values: Any) -> kube_apiserver.Values:
    given = {
        "namespace": "shoot--a--b",
        "image": "i",
        "version": "1.30.1",
        "secrets": SECRETS,
        "encryption": kube_apiserver.Encryption(keys=[OLD]),
        "health_token": "t",
        "host": "api.internal",
        "service_network": "10.0.0.0/16",
    }
    return kube_apiserver.Values(**{**given, **values})


def bare_operation(**known: Any) -> ShootOperation:
    """With nothing else that a task would use."""
    needed = (each for each in fields(ShootOperation) if each.default is MISSING and each.default_factory is MISSING)
    nothing: dict[str, Any] = {each.name: None for each in needed}
    return ShootOperation(**nothing | known)


def named(objects: Sequence[Object], kind: str, prefix: str = "") -> Object:
    return next(each for each in objects if each["kind"] == kind and each["metadata"]["name"].startswith(prefix))


def etcd_of(**values: Any) -> Object:
    certificates = etcd.Certificates(ca="ca", server="server", client="client")
    given = {
        "namespace": "n",
        "role": etcd.MAIN,
        "certificates": certificates,
        "schedules": Schedules("1 2 * * *", "3 4 * * *"),
    }
    return named(etcd.objects(etcd.Values(**{**given, **values})), "Etcd")


def shoot(tolerance: str = "") -> Object:
    failure = {"controlPlane": {"highAvailability": {"failureTolerance": {"type": tolerance}}}} if tolerance else {}
    return {
        "metadata": {"name": "b", "namespace": "garden-a", "uid": "u"},
        "spec": {"provider": {"type": "p"}, **failure},
    }


def seed(*zones: str) -> Object:
    return {"spec": {"provider": {"type": "s", "zones": list(zones)}}}


# --- flags

_SERVER: Object = {
    "admissionPlugins": [{"name": "PodSecurity", "disabled": True}],
    "defaultNotReadyTolerationSeconds": 1,
    "defaultUnreachableTolerationSeconds": 1,
    "featureGates": {"AllAlpha": True},
    "logging": {"verbosity": 2, "httpAccessVerbosity": 3},
    "oidcConfig": {
        "caBundle": "bundle",
        "clientID": "c",
        "groupsClaim": "g",
        "groupsPrefix": "g",
        "issuerURL": "https://issuer.example.com",
        "requiredClaims": {"a": "b"},
        "signingAlgs": ["RS256"],
        "usernameClaim": "u",
        "usernamePrefix": "u",
    },
    "requests": {"maxMutatingInflight": 1, "maxNonMutatingInflight": 1},
    "runtimeConfig": {"apps/v1": True},
    "serviceAccountConfig": {"extendTokenExpiration": True, "maxTokenExpiration": "720h"},
    "watchCacheSizes": {"default": 1, "resources": [{"resource": "secrets", "size": 1}]},
}
WITH_ALL_SETTINGS: dict[str, Any] = {
    "settings": _SERVER,
    "advertised": "10.0.0.1",
    "authentication": "kind: A",
    "has_workers": True,
    "secrets": replace(SECRETS, ca_kubelet_bundle="ca-kubelet", kubelet="kubelet"),
}
"""Of an API server, for as many flags as possible: those of OIDC only without a file for authentication."""
_FEATURES = {"featureGates": {"AllAlpha": True}}
_NAME = re.compile(r"--([a-z0-9-]+)")


def api_server_arguments(version: str, values: Mapping[str, Any] | None = None) -> list[str]:
    return arguments(api_server(**{**(values or WITH_ALL_SETTINGS), "version": version}))


def controller_manager_arguments(version: str) -> list[str]:
    shoot = shoot_with(version=version, workers=1, kubeControllerManager=_FEATURES)
    return kube_controller_manager.arguments(inputs(shoot))


def scheduler_arguments(version: str) -> list[str]:
    return kube_scheduler.arguments(inputs(shoot_with(version=version, kubeScheduler=_FEATURES)))


def flags_in(passed: Sequence[str]) -> set[str]:
    return {found[1] for each in passed if (found := _NAME.match(each))}
