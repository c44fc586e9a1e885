"""Resource usage of pods and nodes, as an API in the cluster of a Shoot with workers."""

import base64

from components.component import ON_NODES, Component
from components.inputs import Inputs
from components.manifest import manifest
from components.namespaces import KUBE_SYSTEM
from components.secrets import tables
from components.secrets.configs import BUNDLE, SignedCertificate, Signer
from gardener.references import stamp
from kube.objects import Object

NAME = "metrics-server"


def _contents(inputs: Inputs) -> list[Object]:
    certificate, bundle = inputs.secrets.current(NAME), inputs.secrets.bundle(tables.CA_METRICS_SERVER.name)
    found = manifest(
        __file__,
        image=inputs.image(NAME),
        host=inputs.host_in_pods,
        certificate={name: base64.b64encode(content).decode() for name, content in certificate.data.items()},
        ca_bundle=base64.b64encode(bundle.data[BUNDLE]).decode(),
    )
    return stamp(found)


def _certificate(_: tables.ControlPlane) -> list[SignedCertificate]:
    """Certificate by the current authority: the API server, its only client, gets the bundle in the same step."""
    names = tables.service_names(NAME, KUBE_SYSTEM)
    return [tables.server(NAME, NAME, tables.CA_METRICS_SERVER, names, signer=Signer.CURRENT)]


COMPONENT = Component(
    name=NAME,
    title=f"{NAME} system component",
    contents=_contents,
    secrets=_certificate,
    has_bundles=True,
    after=[*ON_NODES, "systems-ready"],
)
