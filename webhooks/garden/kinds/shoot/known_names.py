"""Feature gates and admission plugins that a version of Kubernetes knows: no program starts with any other."""

from collections.abc import Iterable, Iterator

from gardener.garden.maintenance.repairs import Table, admission_plugins, feature_gates
from gardener.garden.versions import Version, parse_version
from kube.objects import mapping, mappings, text
from kube.paths import at
from kube.validation import FieldError, forbidden
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write
from webhooks.garden.kinds.shoot.fields import kubernetes_version, own_version, pools_of

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
