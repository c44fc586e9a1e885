"""The ingress controller of a seed, for pages for operators: dashboards and metrics.

It is behind the ingress gateway, which passes TLS for the Seed's ingress domain through to it.
"""

from components import istio
from components.manifest import manifest
from components.parts import in_seed
from components.seed_component import SeedComponent, SeedInputs
from gardener.api.seed_definitions import Stage
from gardener.references import CONFIG_MAP, annotation_key, make_unique
from kube.objects import Object, key, labels

NAME = "nginx-ingress"
CLASS = "nginx-ingress-gardener"
"""Class of the Ingresses that it serves."""
_CONTROLLER = "nginx-ingress-controller"


def _objects(inputs: SeedInputs) -> list[Object]:
    (settings,) = manifest(__file__, "config.yaml")
    config_map = make_unique(settings)
    name = key(config_map).name
    contents = manifest(
        __file__,
        image=inputs.images.nginx_ingress_controller,
        backend_image=inputs.images.ingress_default_backend,
        config_map=name,
        # Only an argument names the ConfigMap, which must not be garbage-collected.
        references={annotation_key(CONFIG_MAP, name): name},
    )
    routes = istio.passed_through(
        _CONTROLLER,
        [f"*.{inputs.ingress_domain}"],
        gateway=inputs.config.sni.ingress.labels,
        labels=labels(settings),
    )
    return in_seed(NAME, [config_map, *contents, *routes])


COMPONENT = SeedComponent(
    name=NAME,
    title=NAME,
    images=["nginx_ingress_controller", "ingress_default_backend"],
    objects=_objects,
    is_of_garden=True,
    is_wanted=lambda inputs: bool(inputs.ingress_domain),
    needs=[Stage.ISTIO],
    after=["istio"],
)
