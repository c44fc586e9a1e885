"""The vertical pod autoscaler of a seed, which adapts requests to usage: recommender, updater and admission webhook."""

import base64

from components.manifest import manifest, without
from components.parts import GARDEN, in_seed
from components.secrets import tables
from components.secrets.configs import BUNDLE, Signer
from components.seed_component import SeedComponent, SeedInputs
from gardener.api.kinds import POD_MONITORS, SERVICE_MONITORS
from kube.objects import Object

NAME = "vpa"
_WEBHOOK_SERVICE = "vpa-webhook"
_MONITORS = (POD_MONITORS, SERVICE_MONITORS)
_CERTIFICATE = tables.server(
    "vpa-admission-controller-server",
    f"{_WEBHOOK_SERVICE}.{GARDEN}.svc",
    tables.CA_SEED,
    tables.service_names(_WEBHOOK_SERVICE, GARDEN),
    signer=Signer.CURRENT,
)


def _objects(inputs: SeedInputs) -> list[Object]:
    images, authority = inputs.images, inputs.secrets.bundle(tables.CA_SEED.name)
    found = manifest(
        __file__,
        admission_image=images.vpa_admission_controller,
        recommender_image=images.vpa_recommender,
        updater_image=images.vpa_updater,
        ca=authority.name,
        ca_bundle=base64.b64encode(authority.data[BUNDLE]).decode(),
        certificate=inputs.secrets.current(_CERTIFICATE.name).name,
    )
    contents = found if inputs.serves(*_MONITORS) else without(found, *(each.kind for each in _MONITORS))
    return in_seed(NAME, [*manifest(__file__, "roles.yaml"), *contents])


COMPONENT = SeedComponent(
    name=NAME,
    title="Kubernetes vertical pod autoscaler",
    images=["vpa_admission_controller", "vpa_recommender", "vpa_updater"],
    objects=_objects,
    secrets=lambda _: [_CERTIFICATE],
    asks_for=_MONITORS,
    is_of_garden=True,
    is_wanted=lambda inputs: inputs.installs_autoscaler,
)
