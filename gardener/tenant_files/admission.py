"""Configurations of admission plugins in the spec of a Shoot.

A plugin that is not listed here has no configuration. Newer releases of Kubernetes read other files through them, such
as `staticManifestsDir`: a field that is not listed is refused.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from gardener.tenant_files.reading import Fields, UnusableFile, Versioned, demand_version, model, plain
from kube.objects import Object

IMAGE_POLICY = "ImagePolicyWebhook"
CALLERS = (IMAGE_POLICY, "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
"""Plugins that use a kubeconfig."""
_APISERVER = "apiserver.config.k8s.io"


class _Limit(Fields, frozen=True, kw_only=True):
    type: str
    qps: int
    burst: int
    cacheSize: int | None = None


class _EventRateLimit(Versioned, frozen=True, kw_only=True):
    limits: list[_Limit] | None = None


class _ImagePolicy(Fields, frozen=True, kw_only=True):
    kubeConfigFile: str | None = None
    allowTTL: int | None = None
    denyTTL: int | None = None
    retryBackoff: int | None = None
    defaultAllow: bool | None = None


class _ImagePolicyWebhook(Fields, frozen=True, kw_only=True):
    imagePolicy: _ImagePolicy = _ImagePolicy()


class _Webhooks(Versioned, frozen=True, kw_only=True):
    apiVersion: str = f"{_APISERVER}/v1"
    kind: str = "WebhookAdmissionConfiguration"
    kubeConfigFile: str | None = None


class _PodNodeSelector(Fields, frozen=True, kw_only=True):
    podNodeSelectorPluginConfig: dict[str, str] | None = None


class _PodSecurityDefaults(Fields, frozen=True, kw_only=True, rename="kebab"):
    enforce: str | None = None
    enforce_version: str | None = None
    audit: str | None = None
    audit_version: str | None = None
    warn: str | None = None
    warn_version: str | None = None


class _PodSecurityExemptions(Fields, frozen=True, kw_only=True):
    usernames: list[str] | None = None
    namespaces: list[str] | None = None
    runtimeClasses: list[str] | None = None


class _PodSecurity(Versioned, frozen=True, kw_only=True):
    defaults: _PodSecurityDefaults | None = None
    exemptions: _PodSecurityExemptions | None = None


class _Toleration(Fields, frozen=True, kw_only=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    tolerationSeconds: int | None = None


class _PodTolerationRestriction(Versioned, frozen=True, kw_only=True):
    default: list[_Toleration] | None = None
    whitelist: list[_Toleration] | None = None


class _Scope(Fields, frozen=True, kw_only=True):
    scopeName: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] | None = None


class _LimitedResource(Fields, frozen=True, kw_only=True):
    apiGroup: str | None = None
    resource: str
    matchContains: list[str] | None = None
    matchScopes: list[_Scope] | None = None


class _ResourceQuota(Versioned, frozen=True, kw_only=True):
    limitedResources: list[_LimitedResource] | None = None


_OF_WEBHOOKS = ((f"{_APISERVER}/v1", f"{_APISERVER}/v1alpha1"), ("WebhookAdmissionConfiguration", "WebhookAdmission"))
_QUOTA, _POD_SECURITY = "resourcequota.admission.k8s.io", "pod-security.admission.config.k8s.io"
_MODELS: Mapping[str, tuple[type[Fields], tuple[str, ...], tuple[str, ...]]] = {
    "EventRateLimit": (_EventRateLimit, ("eventratelimit.admission.k8s.io/v1alpha1",), ("Configuration",)),
    IMAGE_POLICY: (_ImagePolicyWebhook, (), ()),
    "MutatingAdmissionWebhook": (_Webhooks, *_OF_WEBHOOKS),
    "PodNodeSelector": (_PodNodeSelector, (), ()),
    "PodSecurity": (
        _PodSecurity,
        tuple(f"{_POD_SECURITY}/{version}" for version in ("v1", "v1beta1", "v1alpha1")),
        ("PodSecurityConfiguration",),
    ),
    "PodTolerationRestriction": (
        _PodTolerationRestriction,
        ("podtolerationrestriction.admission.k8s.io/v1alpha1",),
        ("Configuration",),
    ),
    "ResourceQuota": (
        _ResourceQuota,
        (f"{_APISERVER}/v1", *(f"{_QUOTA}/{version}" for version in ("v1", "v1beta1", "v1alpha1"))),
        ("ResourceQuotaConfiguration", "Configuration"),
    ),
    "ValidatingAdmissionWebhook": (_Webhooks, *_OF_WEBHOOKS),
}
"""Models by plugin, with versions and kinds of the configuration; empty: it has none."""


def plugin_configuration(plugin: str, config: Any, *, kubeconfig: str = "") -> Object:
    """The configuration of a plugin, written from the allowed fields; empty if it needs none.

    Args: kubeconfig: path of the plugin's kubeconfig, which replaces the one that the tenant names; empty: none.

    Raises:
        UnusableFile: the configuration is not allowed, or not readable.
    """
    if kubeconfig and plugin not in CALLERS:
        raise UnusableFile(f"{plugin} does not use a kubeconfig; remove kubeconfigSecretName")
    if not config and not kubeconfig:
        return {}
    if plugin not in _MODELS:
        raise UnusableFile(f'admission plugin "{plugin}" does not allow configuration')
    of, versions, kinds = _MODELS[plugin]
    found = model(config or {}, of)
    if isinstance(found, Versioned):
        demand_version(found, *versions, kinds=kinds)
    if isinstance(found, _ImagePolicyWebhook):
        inner = msgspec.structs.replace(found.imagePolicy, kubeConfigFile=_path(found.imagePolicy, kubeconfig))
        return plain(msgspec.structs.replace(found, imagePolicy=inner))
    if isinstance(found, _Webhooks):
        found = msgspec.structs.replace(found, kubeConfigFile=_path(found, kubeconfig))
        return {"apiVersion": found.apiVersion, "kind": found.kind, **plain(found)}
    return plain(found)


def _path(config: _ImagePolicy | _Webhooks, kubeconfig: str) -> str | None:
    if config.kubeConfigFile and not kubeconfig:
        raise UnusableFile("kubeConfigFile must not be set; set kubeconfigSecretName to a Secret instead")
    return kubeconfig or None
