"""Values for the chart of an extension: those of its ControllerDeployment, and data of garden and seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube.objects import Object, key, mapping, mappings, metadata, spec, text
from kube.paths import at

_PROTECTED = "seed.gardener.cloud/protected"
_GARDENER = "gardener"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Data of the environment.

    Attributes:
        kubeconfig: name of the Secret with the kubeconfig for the garden; empty if it is not injected.
    """

    version: str
    garden_identity: str
    kubeconfig: str
    features: Mapping[str, bool]


def values(given: Object, *, seed: Object, around: Surroundings) -> Object:
    """Return the values for a chart; keys of `gardener` take precedence over `given`, the ControllerDeployment's
    values.
    """
    return merged(given, {_GARDENER: _gardener(seed, around)})


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Object:
    """Merge mappings at all depths; for other values, `above` takes precedence."""
    result = dict(below)
    for name, value in above.items():
        old = result.get(name)
        result[name] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _gardener(seed: Object, around: Surroundings) -> Object:
    return {
        "version": around.version,
        "garden": {
            "clusterIdentity": around.garden_identity,
            **({"genericKubeconfigSecretName": around.kubeconfig} if around.kubeconfig else {}),
        },
        "gardenlet": {"featureGates": dict(around.features)},
        "seed": _seed(seed),
    }


def _seed(seed: Object) -> Object:
    """Data of the Seed; unset fields are null, so that templates may test them."""
    reported = spec(seed)
    volumes = mappings(at(reported, "volume", "providers"))
    return {
        "name": key(seed).name,
        "clusterIdentity": text(at(seed, "status", "clusterIdentity")),
        "annotations": metadata(seed).get("annotations"),
        "labels": metadata(seed).get("labels"),
        "spec": reported,
        "provider": text(at(reported, "provider", "type")),
        "region": text(at(reported, "provider", "region")),
        "volumeProvider": text(volumes[0].get("name")) if volumes else "",
        "volumeProviders": volumes or None,
        "ingressDomain": text(at(reported, "ingress", "domain")),
        "protected": any(taint.get("key") == _PROTECTED for taint in mappings(reported.get("taints"))),
        "visible": at(reported, "settings", "scheduling", "visible") is not False,
        "taints": reported.get("taints"),
        "networks": mapping(reported.get("networks")),
        "blockCIDRs": at(reported, "networks", "blockCIDRs"),
    }
