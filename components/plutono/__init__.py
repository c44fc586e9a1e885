"""Dashboards of a seed, behind the ingress controller."""

from components import dashboards
from components.entrances import certificates, entrance, ingress
from components.manifest import manifest
from components.parts import GARDEN, in_seed, made
from components.secrets.configs import PASSWORD, BasicAuth
from components.seed_component import SeedComponent, SeedInputs
from gardener import conditions
from gardener.references import stamp
from kube.objects import Object
from kube.resources import CONFIG_MAPS

NAME = "plutono"
_LETTER = "g"
_LOGIN = BasicAuth(name="plutono-admin", user="admin")
_PORT = 3000
_WITHOUT_ADMINISTRATION = {"nginx.ingress.kubernetes.io/server-snippet": "location /api/admin/ {\n  return 403;\n}"}
"""Annotation of the Ingress."""


def _objects(inputs: SeedInputs) -> list[Object]:
    login = inputs.secrets.current(_LOGIN.name)
    contents = manifest(
        __file__,
        image=inputs.images.plutono,
        dashboard_refresher_image=inputs.images.dashboard_refresher,
        login=login.name,
        password=login.data[PASSWORD].decode(),
    )
    way_in = ingress(NAME, entrance(inputs, NAME, _LETTER), port=_PORT, annotations=_WITHOUT_ADMINISTRATION)
    managed = in_seed(NAME, [*stamp(contents), way_in], condition=conditions.OBSERVABILITY_COMPONENTS_HEALTHY)
    return [*managed, _boards()]


def _boards() -> Object:
    """Dashboards of the seed; other ConfigMaps with the same label add more."""
    return made(
        CONFIG_MAPS,
        f"{NAME}-dashboards",
        namespace=GARDEN,
        labels={"component": NAME, "dashboard.monitoring.gardener.cloud/seed": "true"},
        data=dict(dashboards.files()),
    )


COMPONENT = SeedComponent(
    name=NAME,
    title="Plutono",
    images=["plutono", "dashboard_refresher"],
    objects=_objects,
    secrets=lambda inputs: [_LOGIN, *certificates(inputs, NAME, _LETTER)],
    is_of_garden=True,
    is_wanted=lambda inputs: bool(inputs.ingress_domain),
)
