"""Settings and controllers that the versions of Kubernetes, 1.28 to 1.36, support.

A component does not start with an unknown feature gate, admission plugin, API version or controller. Therefore none of
these is passed to it, even if the Shoot requests it. Users are informed earlier: admission of the garden refuses
feature gates and plugins that are unknown to the Shoot's version, and maintenance removes them.

Sources:

- Feature gates and admission plugins: the tables of `gardener.garden.maintenance.repairs`, made from the sources of
  Kubernetes.
- API versions: the same, of those that were removed.
- Controllers: `_OF_APIS` below, by the API that a controller requires, from cmd/kube-controller-manager/app of each
  version: the APIs of its informers, and `requiredFeatureGates`. Names are the short ones, which all versions accept:
  they are aliases since 1.28, which are never removed. Newer controllers have only their long name.
- APIs that can't be disabled: `_NEEDED` below. The admission plugin NodeRestriction reads CSIDrivers while the feature
  ServiceAccountNodeAudienceRestriction is on, which was added in 1.32 and is on by default since 1.33: an API server
  without them is never ready (plugin/pkg/admission/noderestriction/admission.go).
- Structured authentication: 1.30, since when it is on by default.

All other flags that `kube_apiserver` and `kube_controller_manager` pass are known to all of these versions: the table
in `tests/unit/gardenlet/test_kubernetes_flags.py` is made from the sources of each.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gardener.garden.maintenance.repairs import Minor, admission_plugins, ended_api_versions, feature_gates
from gardener.garden.versions import Version, parse_version

STRUCTURED_AUTHENTICATION: Minor = (1, 30)

_NEVER: Minor = (2, 0)
_NEEDED: Mapping[str, Minor] = {"storage.k8s.io/v1/csidrivers": (1, 32)}
"""APIs that API servers require, with the first version that does."""


class _Controller(NamedTuple):
    """Attributes: since: first minor version in which the controller requires the API; before: first one without."""

    name: str
    since: Minor = (0, 0)
    before: Minor = _NEVER


_C = _Controller
_OF_APIS: Mapping[str, tuple[_Controller, ...]] = {
    "admissionregistration.k8s.io/v1beta1": (_C("validatingadmissionpolicy-status-controller", before=(1, 30)),),
    "admissionregistration.k8s.io/v1": (_C("validatingadmissionpolicy-status-controller", since=(1, 30)),),
    "apps/v1": (_C("daemonset"), _C("deployment"), _C("replicaset"), _C("statefulset")),
    "authentication.k8s.io/v1": (_C("attachdetach"), _C("persistentvolume-expander")),
    "authorization.k8s.io/v1": (_C("csrapproving"),),
    "autoscaling/v2": (_C("horizontalpodautoscaling"),),
    "batch/v1": (_C("cronjob"), _C("job"), _C("ttl-after-finished")),
    "certificates.k8s.io/v1": (_C("csrapproving"), _C("csrcleaner"), _C("csrsigning")),
    "coordination.k8s.io/v1": (_C("nodelifecycle"), _C("storage-version-gc")),
    "discovery.k8s.io/v1": (_C("endpointslice"), _C("endpointslicemirroring")),
    "internal.apiserver.k8s.io/v1alpha1": (_C("storage-version-gc"),),
    "networking.k8s.io/v1beta1": (_C("service-cidr-controller", since=(1, 31), before=(1, 33)),),
    "networking.k8s.io/v1": (_C("service-cidr-controller", since=(1, 33)),),
    "policy/v1": (_C("disruption"),),
    # It would retry forever for the disabled API. Before 1.31 it stays on, as in the original gardenlet: a Shoot that
    # is taken over keeps its processes.
    "policy/v1/poddisruptionbudgets": (_C("disruption", since=(1, 31)),),
    "rbac.authorization.k8s.io/v1": (_C("clusterrole-aggregation"),),
    "resource.k8s.io/v1beta1": (
        _C("resource-claim-controller", since=(1, 32), before=(1, 34)),
        _C("device-taint-eviction-controller", since=(1, 33), before=(1, 34)),
    ),
    "resource.k8s.io/v1": (
        _C("resource-claim-controller", since=(1, 34)),
        _C("device-taint-eviction-controller", since=(1, 34)),
    ),
    "storage.k8s.io/v1": (
        _C("selinux-warning-controller", since=(1, 32)),
        _C("volumeattributesclass-protection-controller", since=(1, 34)),
    ),
    "storage.k8s.io/v1beta1": (_C("volumeattributesclass-protection-controller", since=(1, 32), before=(1, 34)),),
}
"""Controllers by the API without which they have nothing to do, or do not start."""


def version_of(text: str) -> Version:
    """Parse a version.

    Raises:
        ValueError: the text is not a version.
    """
    version = parse_version(text)
    if version is None:
        raise ValueError(f"spec.kubernetes.version: {text!r} is not a valid version such as 1.30.5")
    return version


def known_features(features: Mapping[str, bool], version: Version) -> dict[str, bool]:
    unknown = feature_gates().unknown(features, version)
    return {name: on for name, on in features.items() if name not in unknown}


def known_plugins(names: Iterable[str], version: Version) -> list[str]:
    """Names of admission plugins that the version supports."""
    names = list(names)
    unknown = admission_plugins().unknown(names, version)
    return [name for name in names if name not in unknown]


def known_apis(apis: Mapping[str, bool], version: Version) -> dict[str, bool]:
    """APIs that the version supports, without disabled ones that it requires.

    Args: apis: by group and version, or by group, version and resource.
    """
    last = ended_api_versions()
    known = {name: on for name, on in apis.items() if name not in last or version[:2] <= last[name]}
    return {name: on for name, on in known.items() if on or version[:2] < _NEEDED.get(name, _NEVER)}


def controllers_without(apis: Mapping[str, bool], version: Version) -> set[str]:
    """Controllers to disable. Args: apis: whether each API is enabled."""
    return {name for api, on in apis.items() if not on for name in _controllers_of(api, version)}


def _controllers_of(api: str, version: Version) -> Iterator[str]:
    for each in _OF_APIS.get(api, ()):
        if each.since <= version[:2] < each.before:
            yield each.name
