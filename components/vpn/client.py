"""The end of the tunnel in the Shoot."""

import base64
from collections.abc import Iterator, Mapping

from components import istio
from components.access import service_account
from components.component import ON_NODES, Component
from components.inputs import Inputs
from components.namespaces import KUBE_SYSTEM
from components.parts import made
from components.secrets import tables
from components.shoot_pods import FROM_SEED, SECCOMP, SYSTEM_COMPONENT
from components.vpn.parts import DEVICE, DEVICE_MOUNT, OWNER_ONLY, SERVER, TLS_AUTH, TUNNEL, projected
from components.workloads import container, deployment
from gardener import keys
from gardener.references import stamp
from kube.objects import Object, spec, text
from kube.paths import at
from kube.resources import NETWORK_POLICIES, SECRETS

NAME = "vpn-shoot"
_APP = {"app": NAME}
_GATEWAY = 8132
"""Port of the ingress gateway for tunnels."""
_CERTIFICATES = "/srv/secrets/vpn-client"
_CLIENT = "vpn-shoot-client"
"""Name of its image, and of its certificate."""


def _contents(inputs: Inputs) -> Iterator[Object]:
    files = {
        "ca": inputs.secrets.bundle(tables.CA_VPN.name),
        "client": inputs.secrets.current(_CLIENT),
        "tlsauth": inputs.secrets.current(tables.TUNNEL_KEY.name),
    }
    secrets = [
        made(SECRETS, f"{NAME}-{name}", namespace=KUBE_SYSTEM, type="Opaque", data=_encoded(each.data))
        for name, each in files.items()
    ]
    yield from stamp([*secrets, _deployment(inputs)])
    yield service_account(NAME, KUBE_SYSTEM, labels=_APP)
    tunnel = {**_APP, **SYSTEM_COMPONENT, "type": "tunnel"}
    yield _policy(
        "allow-from-seed",
        f"Pods with the label {FROM_SEED}=allowed are reached from the control plane.",
        podSelector={"matchLabels": {FROM_SEED: keys.ALLOWED}},
        ingress=[{"from": [{"podSelector": {"matchLabels": tunnel}}]}],
        policyTypes=["Ingress"],
    )
    yield _policy(
        "allow-vpn",
        "The tunnel reaches all, and is reached from the seed.",
        podSelector={"matchLabels": _APP},
        egress=[{}],
        ingress=[{}],
        policyTypes=["Egress", "Ingress"],
    )


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in data.items()}


def _policy(name: str, described: str, **spec: object) -> Object:
    notes = {"gardener.cloud/description": described}
    return made(NETWORK_POLICIES, f"gardener.cloud--{name}", namespace=KUBE_SYSTEM, annotations=notes, spec=spec)


def _deployment(inputs: Inputs) -> Object:
    sources = [
        projected(f"{NAME}-ca", {"bundle.crt": "ca.crt"}),
        projected(f"{NAME}-client", {each: each for each in ("tls.crt", "tls.key")}),
    ]
    pod = {
        "automountServiceAccountToken": False,
        "dnsPolicy": "Default",
        "priorityClassName": "system-cluster-critical",
        "securityContext": SECCOMP,
        "serviceAccountName": NAME,
        "initContainers": [_init(inputs)],
        "containers": [_container(inputs)],
        "volumes": [
            {"name": NAME, "projected": {"sources": sources, "defaultMode": OWNER_ONLY}},
            {
                "name": f"{NAME}-tlsauth",
                "secret": {"secretName": f"{NAME}-tlsauth", "defaultMode": OWNER_ONLY},
            },
            DEVICE,
        ],
    }
    return deployment(
        NAME,
        namespace=KUBE_SYSTEM,
        labels={**_APP, **SYSTEM_COMPONENT},
        selects=_APP,
        pod_labels={**SYSTEM_COMPONENT, "type": "tunnel"},
        pod=pod,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": "0%"}},
    )


def _container(inputs: Inputs) -> Object:
    variables = {
        "IP_FAMILIES": "IPv4",
        "ENDPOINT": inputs.host_in_pods,
        "OPENVPN_PORT": str(_GATEWAY),
        "REVERSED_VPN_HEADER": f"outbound|{TUNNEL}||{istio.host_of(SERVER, inputs.namespace)}",
        "IS_SHOOT_CLIENT": "true",
        "SEED_POD_NETWORK": text(at(spec(inputs.seed), "networks", "pods")),
        "DO_NOT_CONFIGURE_KERNEL_SETTINGS": "true",
    }
    found = container(
        NAME,
        inputs.image(_CLIENT),
        cpu="100m",
        memory="100Mi",
        env=list(istio.texts(**variables)),
        securityContext={"privileged": False, "capabilities": {"add": ["NET_ADMIN"]}},
        volumeMounts=[
            {"name": NAME, "mountPath": _CERTIFICATES},
            {"name": f"{NAME}-tlsauth", "mountPath": TLS_AUTH},
            DEVICE_MOUNT,
        ],
    )
    found["resources"]["limits"] = {"memory": "120Mi"}
    return found


def _init(inputs: Inputs) -> Object:
    """Container that sets kernel parameters of the node for the tunnel, and exits."""
    found = container(
        f"{NAME}-init",
        inputs.image(_CLIENT),
        cpu="30m",
        memory="32Mi",
        env=[
            *istio.texts(IP_FAMILIES="IPv4", IS_SHOOT_CLIENT="true"),
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            *istio.texts(EXIT_AFTER_CONFIGURING_KERNEL_SETTINGS="true"),
        ],
        securityContext={"privileged": True},
    )
    found["resources"]["limits"] = {"memory": "32Mi"}
    return found


COMPONENT = Component(
    name=NAME,
    title=f"{NAME} system component",
    has_bundles=True,
    contents=_contents,
    secrets=lambda _: [tables.client(_CLIENT, _CLIENT, tables.CA_VPN)],
    after=[*ON_NODES, SERVER],
)
