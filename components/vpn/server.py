"""The end of the tunnel in the seed."""

from components import istio
from components.component import OF_DEPLOYMENT, Component
from components.control_plane import (
    ALL_SCRAPE_TARGETS,
    CONTROL_PLANE,
    PRIORITY,
    REACHES_SHOOT,
    SEEN_BY_EXTENSIONS,
    config_map_volume,
)
from components.inputs import Inputs
from components.parts import TO_DNS, allowed_ports, autoscaler_of
from components.results import INFRASTRUCTURE
from components.secrets import tables
from components.secrets.configs import Config
from components.vpn.parts import DEVICE, DEVICE_MOUNT, OWNER_ONLY, SERVER, TLS_AUTH, TUNNEL, projected
from components.vpn.proxy import CERTIFICATES, METRICS, PROXY, configuration
from components.workloads import container, deployment, port, service
from gardener import keys
from gardener.references import inject_annotations
from kube.objects import Object, key
from kube.resources import DEPLOYMENTS

_APP = {"app": SERVER}
_CALLERS = (
    '{"matchLabels":{"gardener.cloud/role":"istio-ingress"}}',
    f'{{"matchExpressions":[{{"key":"{keys.EXPOSURE_CLASS_HANDLER}","operator":"Exists"}}]}}',
)
"""Selectors of namespaces."""


def _objects(inputs: Inputs) -> list[Object]:
    namespace = inputs.namespace
    return [
        configuration(namespace),
        _service(namespace),
        istio.destination_rule(SERVER, namespace=namespace),
        inject_annotations(_deployment(inputs)),
        *([_autoscaler(namespace)] if inputs.autoscaled else []),
    ]


def _service(namespace: str) -> Object:
    notes = {
        istio.EXPORT: "*",
        ALL_SCRAPE_TARGETS: allowed_ports(METRICS),
        keys.NAMESPACE_SELECTORS: f"[{','.join(_CALLERS)}]",
        keys.NAMESPACE_ALIAS: "all-shoots",
    }
    ports = [port(SERVER, TUNNEL), port("http-proxy", PROXY), port("metrics", METRICS)]
    return service(SERVER, namespace=namespace, ports=ports, selects=_APP, annotations=notes)


def _autoscaler(namespace: str) -> Object:
    policies = [
        {"containerName": name, "controlledValues": "RequestsOnly", "minAllowed": {"memory": memory}}
        for name, memory in ((SERVER, "20Mi"), ("envoy-proxy", "100Mi"))
    ]
    target = {**DEPLOYMENTS.type_meta, "name": SERVER}
    return autoscaler_of(target, f"{SERVER}-vpa", namespace, policies=policies)


def _deployment(inputs: Inputs) -> Object:
    key_name = inputs.secrets.current(tables.TUNNEL_KEY.name).name
    sources = [
        projected(inputs.secrets.bundle(tables.CA_VPN.name).name, {"bundle.crt": "ca.crt"}),
        projected(inputs.secrets.current(SERVER).name, {each: each for each in ("tls.crt", "tls.key")}),
    ]
    pod = {
        "automountServiceAccountToken": False,
        "dnsPolicy": "Default",
        "priorityClassName": PRIORITY.format(300),
        "containers": [_server_container(inputs), _proxy_container(inputs)],
        "volumes": [
            DEVICE,
            {"name": "certs", "projected": {"sources": sources, "defaultMode": 0o644}},
            {
                "name": "tlsauth",
                "secret": {"secretName": key_name, "defaultMode": OWNER_ONLY},
            },
            {"name": "envoy-config", **config_map_volume(key(configuration(inputs.namespace)).name)},
        ],
    }
    reaches = dict.fromkeys((TO_DNS, f"{keys.TO_NETWORKS_PREFIX}private-networks"), keys.ALLOWED)
    return deployment(
        SERVER,
        namespace=inputs.namespace,
        labels={**_APP, **CONTROL_PLANE, **SEEN_BY_EXTENSIONS},
        selects=_APP,
        pod_labels={**CONTROL_PLANE, **reaches, **REACHES_SHOOT},
        pod=pod,
        replicas=inputs.running.replicas(1),
        revisionHistoryLimit=1,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 100, "maxUnavailable": 0}},
    )


def _answers(number: int) -> Object:
    probe = {"tcpSocket": {"port": number}, "timeoutSeconds": 1, "periodSeconds": 10, "failureThreshold": 3}
    return {"livenessProbe": {**probe, "successThreshold": 1}, "readinessProbe": {**probe, "successThreshold": 1}}


def _server_container(inputs: Inputs) -> Object:
    reached = inputs.networks
    networks = {
        "IP_FAMILIES": "IPv4",
        "SERVICE_NETWORK": reached.services,
        "POD_NETWORK": reached.pods,
        "NODE_NETWORK": reached.nodes,
    }
    variables: list[Object] = [{"name": name, "value": value} for name, value in networks.items()]
    variables.append({"name": "LOCAL_NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}})
    found = container(
        SERVER,
        inputs.image(SERVER),
        cpu="100m",
        memory="20Mi",
        env=variables,
        ports=[{"name": "tcp-tunnel", "containerPort": TUNNEL, "protocol": "TCP"}],
        securityContext={"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}},
        volumeMounts=[
            DEVICE_MOUNT,
            {"name": "certs", "mountPath": CERTIFICATES},
            {"name": "tlsauth", "mountPath": TLS_AUTH},
        ],
        **_answers(TUNNEL),
    )
    found["resources"]["limits"] = {"memory": "100Mi"}
    return found


def _proxy_container(inputs: Inputs) -> Object:
    found = container(
        "envoy-proxy",
        inputs.image("envoy"),
        cpu="20m",
        memory="100Mi",
        command=["envoy", "--concurrency", "2", "-c", "/etc/envoy/envoy.yaml"],
        securityContext={"capabilities": {"drop": ["all"]}},
        volumeMounts=[
            {"name": "certs", "mountPath": CERTIFICATES},
            {"name": "envoy-config", "mountPath": "/etc/envoy"},
        ],
        **_answers(PROXY),
    )
    found["resources"]["limits"] = {"memory": "850M"}
    return found


def _secrets(plane: tables.ControlPlane) -> list[Config]:
    names = tables.service_names(SERVER, plane.namespace)
    return [
        tables.TUNNEL_KEY,
        tables.server(SERVER, SERVER, tables.CA_VPN, names),
        # Client certificate of the API server, which uses the proxy.
        tables.client("kube-apiserver-http-proxy", "kube-apiserver-http-proxy", tables.CA_VPN),
    ]


COMPONENT = Component(
    name=SERVER,
    title=SERVER,
    objects=_objects,
    secrets=_secrets,
    has_bundles=True,
    readiness=OF_DEPLOYMENT,
    results=[INFRASTRUCTURE],
    after=["secrets", "namespace", "infrastructure-ready", "api-server-ready"],
    is_left_asleep=False,
)
