"""What the versions of Kubernetes, 1.28 to 1.36, take of a Shoot's settings, and which controllers they have.

A component does not start with a feature gate, an admission plugin, an API version or a controller that it does not
know. So none of these is passed to it, whatever the Shoot says. Users hear of it before: admission of the garden
refuses feature gates and plugins that the Shoot's version does not know, and maintenance removes them.

Sources:

- Feature gates and admission plugins: the tables of `gardener.garden.maintenance.repairs`, made from the sources of
  Kubernetes.
- API versions: the same, of those that have ended.
- Controllers: `_OF_APIS` below, by the API that a controller can't do without, from cmd/kube-controller-manager/app of
  each version: what informers need, and `requiredFeatureGates`. Names are the short ones, which all versions take: they
  are aliases since 1.28, which are never removed. Controllers that came later have only their long name.
- APIs that can't be off: `_NEEDED` below. The admission plugin NodeRestriction reads CSIDrivers while the feature
  ServiceAccountNodeAudienceRestriction is on, which came with 1.32 and is on by default since 1.33: an API server
  without them is never ready (plugin/pkg/admission/noderestriction/admission.go).
- Structured authentication: 1.30, since when it is on by default.

All flags that `kube_apiserver` and `kube_controller_manager` pass besides are known to all of these versions: the table
in `tests/unit/gardenlet/test_kubernetes_flags.py` is made from the sources of each.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gardener.garden.maintenance.repairs import Minor, admission_plugins, ended_api_versions, feature_gates
from gardener.garden.versions import Version, parse_version

STRUCTURED_AUTHENTICATION: Minor = (1, 30)

_NEVER: Minor = (2, 0)
_NEEDED: Mapping[str, Minor] = {"storage.k8s.io/v1/csidrivers": (1, 32)}
"""By API: since which version no API server works without it."""


class _Controller(NamedTuple):
    """Attributes: since: the first minor version that has it in connection with the API; before: the first without."""

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
    # It would ask for ever for what is off. Before, it is left as other gardenlets leave it: a Shoot that is taken over
    # keeps its processes.
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
"""By API: the controllers that have nothing to do, or do not start, if it is off."""


def version_of(text: str) -> Version:
    """Raises ValueError: it is no version."""
    version = parse_version(text)
    if version is None:
        raise ValueError(f"spec.kubernetes.version: {text!r} is no version such as 1.30.5")
    return version


def known_features(features: Mapping[str, bool], version: Version) -> dict[str, bool]:
    unknown = feature_gates().unknown(features, version)
    return {name: on for name, on in features.items() if name not in unknown}


def known_plugins(names: Iterable[str], version: Version) -> list[str]:
    """Of admission."""
    names = list(names)
    unknown = admission_plugins().unknown(names, version)
    return [name for name in names if name not in unknown]


def known_apis(apis: Mapping[str, bool], version: Version) -> dict[str, bool]:
    """Without what has ended, and without what would be off and can't be.

    Args: apis: by group and version, or by group, version and resource.
    """
    last = ended_api_versions()
    known = {name: on for name, on in apis.items() if name not in last or version[:2] <= last[name]}
    return {name: on for name, on in known.items() if on or version[:2] < _NEEDED.get(name, _NEVER)}


def controllers_without(apis: Mapping[str, bool], version: Version) -> set[str]:
    """Which controllers are to be off. Args: apis: which are on or off."""
    return {name for api, on in apis.items() if not on for name in _controllers_of(api, version)}


def _controllers_of(api: str, version: Version) -> Iterator[str]:
    for each in _OF_APIS.get(api, ()):
        if each.since <= version[:2] < each.before:
            yield each.name
