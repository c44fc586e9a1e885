"""Files of the API server of a Shoot: ConfigMaps and Secrets named after their content.

Files with keys or kubeconfigs are in Secrets.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from components.kube_apiserver.plugins import configured
from components.kube_apiserver.values import NAME, Encryption, Key, Values
from components.parts import made
from gardener.references import make_unique
from gardener.tenant_files.admission import plugin_configuration
from kube.objects import Object, text
from kube.resources import CONFIG_MAPS, SECRETS
from kube.yaml import Dumper

ENCRYPTION = f"{NAME}-etcd-encryption-configuration"
ENCRYPTION_FILE = "encryption-configuration.yaml"
AUDIT_POLICY_FILE = "audit-policy.yaml"
ADMISSION_FILE = "admission-configuration.yaml"
ADMISSION_DIRECTORY = "/etc/kubernetes/admission"
ADMISSION_KUBECONFIGS_DIRECTORY = "/etc/kubernetes/admission-kubeconfigs"
AUTHENTICATION_FILE = "config.yaml"
OIDC_CA_FILE = "ca.crt"
EGRESS_FILE = "egress-selector-configuration.yaml"
EGRESS_DIRECTORY = "/etc/kubernetes/egress"
TUNNEL_AUTHORITY_DIRECTORY, TUNNEL_DIRECTORY = "/srv/kubernetes/ca-vpn", "/etc/srv/kubernetes/envoy"
TUNNEL_URL = "https://vpn-seed-server:9443"

_NO_AUDIT = """apiVersion: audit.k8s.io/v1
kind: Policy
metadata:
  creationTimestamp: null
rules:
- level: None
"""


def audit_policy(values: Values) -> Object:
    return _config_map("audit-policy-config", values, {AUDIT_POLICY_FILE: values.audit_policy or _NO_AUDIT})


def admission(values: Values) -> Object:
    """The configurations of admission plugins, a file each. Raises UnusableFile."""
    files = {file: _yaml(config) for file, config in _admission_files(values)}
    plugins = [
        {"name": plugin.name, "path": f"{ADMISSION_DIRECTORY}/{plugin.file}"}
        for plugin in configured(values)
        if plugin.file in files
    ]
    listed = {
        "apiVersion": "apiserver.k8s.io/v1alpha1",
        "kind": "AdmissionConfiguration",
        "plugins": plugins or None,
    }
    return _config_map(f"{NAME}-admission-config", values, {ADMISSION_FILE: _yaml(listed), **files})


def _admission_files(values: Values) -> Iterator[tuple[str, Object]]:
    """Names and contents of the plugins' configuration files.

    Raises:
        UnusableFile: a configuration is not allowed or not readable.
    """
    for plugin in configured(values):
        path = f"{ADMISSION_KUBECONFIGS_DIRECTORY}/{plugin.kubeconfig_file}" if plugin.kubeconfig else ""
        if config := plugin_configuration(plugin.name, plugin.config, kubeconfig=path):
            yield plugin.file, config


def admission_kubeconfigs(values: Values) -> Object:
    data = {plugin.kubeconfig_file: plugin.kubeconfig for plugin in configured(values) if plugin.kubeconfig}
    return _secret(f"{NAME}-admission-kubeconfigs", values.namespace, data)


def authentication(values: Values) -> Object:
    return _config_map(f"{NAME}-authentication-config", values, {AUTHENTICATION_FILE: values.authentication})


def oidc_authority(values: Values) -> Object:
    bundle = text(values.setting("oidcConfig").get("caBundle"))
    return _secret(f"{NAME}-oidc-cabundle", values.namespace, {OIDC_CA_FILE: bundle})


def egress(values: Values) -> Object:
    """Routes of the API server: to the cluster through the tunnel, to others directly."""
    tls = {
        "caBundle": f"{TUNNEL_AUTHORITY_DIRECTORY}/bundle.crt",
        "clientCert": f"{TUNNEL_DIRECTORY}/tls.crt",
        "clientKey": f"{TUNNEL_DIRECTORY}/tls.key",
    }
    tunnel = {"proxyProtocol": "HTTPConnect", "transport": {"tcp": {"url": TUNNEL_URL, "tlsConfig": tls}}}
    ways = {"cluster": tunnel, "controlplane": {"proxyProtocol": "Direct"}, "etcd": {"proxyProtocol": "Direct"}}
    config = {
        "apiVersion": "apiserver.k8s.io/v1alpha1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": name, "connection": way} for name, way in ways.items()],
    }
    return _config_map(f"{NAME}-egress-selector-config", values, {EGRESS_FILE: _yaml(config)})


def encryption(namespace: str, content: Encryption) -> Object:
    data = {ENCRYPTION_FILE: _yaml(_encryption_configuration(content))}
    return _secret(ENCRYPTION, namespace, data, labels={"role": ENCRYPTION})


def _encryption_configuration(content: Encryption) -> Object:
    encrypts = {"aescbc": {"keys": [_key(each) for each in content.keys]}}
    # The first provider encrypts.
    entries = [{"resources": list(content.resources), "providers": [encrypts, {"identity": {}}]}]
    if content.removed:
        entries.append({"resources": list(content.removed), "providers": [{"identity": {}}, encrypts]})
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": entries}


def _key(key: Key) -> Object:
    return {"name": key.name, "secret": key.secret}


def _config_map(name: str, values: Values, data: Mapping[str, str]) -> Object:
    return make_unique(made(CONFIG_MAPS, name, namespace=values.namespace, data=dict(data)))


def _secret(name: str, namespace: str, data: Mapping[str, str], *, labels: Mapping[str, str] | None = None) -> Object:
    encoded = {file: base64.b64encode(content.encode()).decode() for file, content in data.items()}
    secret = make_unique(made(SECRETS, name, namespace=namespace, labels=labels, type="Opaque", data=encoded))
    # Empty data are stored as null; writing them again would be a change, which is refused.
    return secret if encoded else {field: value for field, value in secret.items() if field != "data"}


def _yaml(content: Any) -> str:
    return yaml.dump(content, Dumper=Dumper, sort_keys=True, width=1 << 20)
