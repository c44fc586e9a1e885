"""Webhook configurations as Kubernetes objects."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from gardener.keys import GROUP, REMEDIATION_EXCLUDE
from kube.objects import Object
from kube.resources import Resource
from webhooks.rules.registration import Instance, Mode, Registration

INJECT_CA_FROM = "cert-manager.io/inject-ca-from"


@dataclass(frozen=True, slots=True)
class Service:
    """Service in the API server's own cluster, port 443, for reaching the webhooks."""

    namespace: str
    name: str

    def client_config(self, path: str) -> Object:
        return {"service": {"namespace": self.namespace, "name": self.name, "path": path}}


@dataclass(frozen=True, slots=True)
class Url:
    """Address at which the API server reaches the webhooks: `https://host:port`."""

    base: str

    def client_config(self, path: str) -> Object:
        return {"url": f"{self.base.rstrip('/')}{path}"}


@dataclass(frozen=True, slots=True)
class CaBundle:
    """Certificates, as PEM, by which the API server verifies the webhooks."""

    pem: bytes


@dataclass(frozen=True, slots=True)
class CertManager:
    """Certificate whose CA cert-manager injects: `namespace/name`."""

    certificate: str


Address = Service | Url
Trust = CaBundle | CertManager | None
"""None if another program sets the CA."""


def name_of(instance: Instance) -> str:
    return f"{instance.app}-shoot" if instance.mode is Mode.TARGET else instance.app


def labels_of(instance: Instance) -> dict[str, str]:
    ours = {"app": instance.app}
    return ours if instance.mode is Mode.TARGET else {**ours, REMEDIATION_EXCLUDE: "true"}


def configuration(
    kind: Resource, instance: Instance, entries: Sequence[Registration], address: Address, trust: Trust
) -> Object:
    metadata: Object = {"name": name_of(instance), "labels": labels_of(instance)}
    if isinstance(trust, CertManager):
        metadata["annotations"] = {INJECT_CA_FROM: trust.certificate}
    return {
        **kind.type_meta,
        "metadata": metadata,
        "webhooks": [_webhook(entry, address, trust) for entry in entries],
    }


def _webhook(entry: Registration, address: Address, trust: Trust) -> Object:
    client_config = address.client_config(entry.path)
    if isinstance(trust, CaBundle):
        client_config["caBundle"] = base64.b64encode(trust.pem).decode()
    webhook = {
        "name": f"{entry.name}.{GROUP}",
        "clientConfig": client_config,
        "rules": [rule.json() for rule in entry.rules],
        "namespaceSelector": entry.namespaces.json(),
        "objectSelector": entry.objects.json(),
        "failurePolicy": entry.failure_policy,
        "matchPolicy": entry.match_policy,
        "sideEffects": "None",
        "timeoutSeconds": entry.timeout_seconds,
        "admissionReviewVersions": ["v1beta1", "v1"],
    }
    if entry.reinvocation_policy:
        webhook["reinvocationPolicy"] = entry.reinvocation_policy
    if entry.only_for_group:
        is_one = f"'{entry.only_for_group}' in request.userInfo.groups"
        webhook["matchConditions"] = [{"name": "group", "expression": is_one}]
    if entry.condition:
        webhook["matchConditions"] = [{"name": "content", "expression": entry.condition}]
    return webhook
