"""Admission plugins of a Shoot's API server, and their configurations."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from components.kube_apiserver.values import Values
from components.kubernetes_versions import known_plugins
from kube.objects import Object, mappings, text

DEFAULTS = (
    "Priority",
    "NamespaceLifecycle",
    "LimitRanger",
    "PodSecurity",
    "ServiceAccount",
    "NodeRestriction",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "ResourceQuota",
    "StorageObjectInUseProtection",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionWebhook",
)
"""Enabled unless the Shoot disables one."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """Attributes: kubeconfig: content of the Secret that the Shoot names for it."""

    name: str
    config: Any
    kubeconfig: str

    @property
    def file(self) -> str:
        return f"{self.name.lower()}.yaml"

    @property
    def kubeconfig_file(self) -> str:
        return f"{self.name.lower()}-kubeconfig.yaml"


def enabled(values: Values) -> list[str]:
    names = [*DEFAULTS, *(text(each.get("name")) for each in _given(values))]
    wanted = dict.fromkeys(name for name in names if name not in _off(values))
    return known_plugins(wanted, values.kubernetes)


def disabled(values: Values) -> list[str]:
    return known_plugins(sorted(_off(values)), values.kubernetes)


def configured(values: Values) -> Iterator[Plugin]:
    """Enabled plugins with a configuration or a kubeconfig, by name."""
    on = set(enabled(values))
    for each in sorted(_given(values), key=lambda plugin: text(plugin.get("name"))):
        name, config = text(each.get("name")), each.get("config")
        kubeconfig = values.admission_kubeconfigs.get(name, "")
        if name in on and (config or kubeconfig):
            yield Plugin(name, config, kubeconfig)


def _given(values: Values) -> list[Object]:
    return mappings(values.settings.get("admissionPlugins"))


def _off(values: Values) -> set[str]:
    return {text(each.get("name")) for each in _given(values) if each.get("disabled") is True}
