"""Authorization of tunnels to Shoots: the ingress gateway consults this server for each of them."""

from collections.abc import Iterator

import orjson

from components import istio
from components.parts import GARDEN, autoscaler, disruption_budget, made
from components.seed_component import SeedComponent, SeedInputs
from components.workloads import container, deployment, port, service
from gardener import keys
from gardener.api.kinds import VIRTUAL_SERVICES
from gardener.api.seed_definitions import Stage
from kube.objects import Object

NAME = "reversed-vpn-auth-server"
_REPLICAS = 2
HOST = istio.host_of(NAME)
_LABELS = {"app": NAME}
PORT = 9001


def _objects(inputs: SeedInputs) -> list[Object]:
    """Objects written by the gardenlet itself, for seeds in which Istio serves the gateways."""
    return list(_contents(inputs))


def _contents(inputs: SeedInputs) -> Iterator[Object]:
    yield _deployment(inputs)
    yield _service()
    yield disruption_budget(f"{NAME}-pdb", GARDEN, labels=_LABELS)
    policy = {"containerName": NAME, "minAllowed": {"memory": "100Mi"}}
    yield autoscaler(f"{NAME}-vpa", GARDEN, deployment=NAME, policy=policy)
    destination = {"host": HOST, "port": {"number": PORT}}
    spec: Object = {"exportTo": istio.EVERYWHERE, "hosts": [HOST], "http": [{"route": [{"destination": destination}]}]}
    yield made(VIRTUAL_SERVICES, NAME, namespace=GARDEN, spec=spec)
    yield istio.destination_rule(NAME)


def _deployment(inputs: SeedInputs) -> Object:
    ports = [{"name": "grpc-authz", "containerPort": PORT, "protocol": "TCP"}]
    pod = {
        "containers": [
            container(NAME, inputs.images.vpn_authorization_server, cpu="100m", memory="100Mi", ports=ports)
        ],
        "automountServiceAccountToken": False,
        "dnsPolicy": "Default",
        "priorityClassName": "gardener-system-900",
    }
    return deployment(
        NAME,
        labels={**_LABELS, keys.HIGH_AVAILABILITY_TYPE: "server"},
        selects=_LABELS,
        pod=pod,
        replicas=_REPLICAS,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 100}},
    )


def _service() -> Object:
    reached = {
        istio.EXPORT: "*",
        keys.NAMESPACE_SELECTORS: orjson.dumps(istio.IN_GATEWAYS).decode(),
    }
    return service(NAME, ports=[port("grpc-authz", PORT)], selects=_LABELS, annotations=reached)


COMPONENT = SeedComponent(
    name="vpn-authorization-server",
    title="VPN authorization server",
    images=["vpn_authorization_server"],
    objects=_objects,
    needs=[Stage.ISTIO],
    after=["istio"],
)
