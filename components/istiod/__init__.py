"""Istiod, which configures the ingress gateways of a seed from objects of Istio's kinds."""

import hashlib
from dataclasses import dataclass

from components.manifest import manifest, of_kind, without
from components.parts import in_seed
from gardener.api.kinds import SERVICE_MONITORS
from kube.objects import Object
from kube.resources import CONFIG_MAPS, DEPLOYMENTS

NAME, NAMESPACE = "istiod", "istio-system"
MANAGED_RESOURCE = "istio-system"
_CHECKSUM = "checksum/istio-config"
"""Annotation of pods, which read their settings only at the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes: monitored: whether there are ServiceMonitors."""

    image: str
    monitored: bool = True


def objects(values: Values) -> list[Object]:
    found = manifest(__file__, image=values.image)
    mesh = of_kind(found, CONFIG_MAPS.kind)["data"]["mesh"]
    pod = of_kind(found, DEPLOYMENTS.kind)["spec"]["template"]["metadata"]
    pod["annotations"][_CHECKSUM] = hashlib.sha256(mesh.encode()).hexdigest()
    contents = found if values.monitored else without(found, SERVICE_MONITORS.kind)
    return in_seed(MANAGED_RESOURCE, contents, namespace=NAMESPACE)
