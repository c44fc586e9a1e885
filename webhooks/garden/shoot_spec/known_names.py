"""Feature gates, admission plugins and APIs that a version of Kubernetes knows: no program starts with any other."""

from collections.abc import Iterable, Iterator

from gardener.garden.maintenance.repairs import Table, admission_plugins, api_versions, feature_gates
from gardener.garden.versions import Version, parse_version
from kube.objects import mapping, mappings, text
from kube.paths import at
from kube.validation import FieldError, forbidden, invalid
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import kubernetes_version, own_version, pools_of, workers_of

_RUNTIME_CONFIG = "spec.kubernetes.kubeAPIServer.runtimeConfig"
_ALL_APIS = frozenset({"api/all", "api/ga", "api/beta", "api/alpha"})
_CORE = "v1"
_REQUIRED = frozenset({_CORE, "networking.k8s.io/v1", "rbac.authorization.k8s.io/v1"})
"""APIs that the original does not let Shoots turn off."""
_REQUIRED_WITH_WORKERS = _REQUIRED | {"admissionregistration.k8s.io/v1", "apps/v1", "storage.k8s.io/v1"}
_COMPONENTS = ("kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet")


def unknown_names(write: Write) -> Iterator[Finding]:
    """Rule for `checks`."""
    version = kubernetes_version(write.spec)
    for component in _COMPONENTS:
        given = at(write.spec, "kubernetes", component, "featureGates")
        yield from _unknown(feature_gates(), f"spec.kubernetes.{component}.featureGates", mapping(given), version)
    for pool in pools_of(write):
        given = at(pool.worker, "kubernetes", "kubelet", "featureGates")
        path = f"{pool.path}.kubernetes.kubelet.featureGates"
        yield from _unknown(feature_gates(), path, mapping(given), parse_version(own_version(pool.worker)) or version)
    plugins = mappings(at(write.spec, "kubernetes", "kubeAPIServer", "admissionPlugins"))
    names = [text(each.get("name")) for each in plugins]
    yield from _unknown(admission_plugins(), "spec.kubernetes.kubeAPIServer.admissionPlugins", names, version)


def _unknown(table: Table, path: str, names: Iterable[str], version: Version | None) -> Iterator[FieldError]:
    if version is None:
        return
    for name in table.unknown((each for each in names if each), version):
        yield forbidden(f"{path}[{name}]", f"Kubernetes {version.major}.{version.minor} does not know {name}")


def api_errors(write: Write) -> Iterator[Finding]:
    """Rule for `checks`: `runtimeConfig` names APIs of Kubernetes, and does not turn off those that a Shoot needs."""
    given = mapping(at(write.spec, "kubernetes", "kubeAPIServer", "runtimeConfig"))
    version = kubernetes_version(write.spec)
    if not given or version is None:
        return
    required = _REQUIRED_WITH_WORKERS if workers_of(write) else _REQUIRED
    for name, is_on in given.items():
        path, api = f"{_RUNTIME_CONFIG}[{name}]", _api_version(name)
        if name in {"api/all", "api/ga"} and is_on is False:
            yield forbidden(path, f"{name} cannot be disabled; disable single APIs instead")
        elif name in _ALL_APIS:
            continue
        elif api is None:
            yield invalid(path, name, "must be a group with a version, such as batch/v1, or one resource of it")
        elif api != _CORE and api_versions().unknown([api], version):
            detail = f'unknown API group version "{api}": Kubernetes {version.major}.{version.minor} has no such API'
            yield invalid(path, name, f"{detail}; take it out (CustomResourceDefinitions need no entry)")
        elif is_on is False and name in required:
            yield forbidden(path, f'api "{name}" cannot be disabled; take it out')


def _api_version(name: str) -> str | None:
    """Return the group and version of a key; None if it has another form."""
    parts = name.removeprefix("api/").split("/")
    if parts[0] == _CORE and len(parts) <= 2:
        return _CORE
    return "/".join(parts[:2]) if len(parts) in (2, 3) and all(parts) else None
