"""The DNS server in a Shoot with workers."""

from collections.abc import Iterator

from components.access import cluster_role, cluster_role_binding, rule, service_account
from components.component import ON_NODES, Component, Read
from components.inputs import Inputs
from components.namespaces import KUBE_SYSTEM
from components.parts import disruption_budget, made
from components.results import INFRASTRUCTURE
from components.shoot_pods import SYSTEM_COMPONENT
from components.workloads import container, deployment, service
from gardener import keys
from kube.objects import Key, Object, text
from kube.paths import at
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, NETWORK_POLICIES

NAME = "coredns"
LABELS = {"k8s-app": "kube-dns"}
_RESTARTED = "gardener.cloud/restarted-at"
"""Annotation of its pods: time of the last restart without a change."""
_RESTART = "restartCoreAddons"
"""Task of a Shoot that requests a restart."""
_SERVICE = "kube-dns"
_CUSTOM = f"{NAME}-custom"
_DNS, _METRICS, _HEALTH, _READY = 8053, 9153, 8080, 8181
_DIRECTORY = "/etc/coredns"
_LEAST, _MOST = 2, 5
_ANNOTATIONS = ("spec", "template", "metadata", "annotations")
_EXAMPLE = "# See the documentation of CoreDNS: snippets in this ConfigMap are read beside its own configuration."
_COREFILE = f""".:{_DNS} {{
  errors
  log . {{
      class error
  }}
  health {{
      lameduck 15s
  }}
  ready
  rewrite stop {{
    name regex (^(?:[^\\.]+\\.)+)svc\\.cluster\\.local\\.svc\\.cluster\\.local {{1}}svc.cluster.local
    answer name (^(?:[^\\.]+\\.)+)svc\\.cluster\\.local {{1}}svc.cluster.local.svc.cluster.local
    answer value (^(?:[^\\.]+\\.)+)svc\\.cluster\\.local {{1}}svc.cluster.local.svc.cluster.local
  }}
  kubernetes cluster.local in-addr.arpa ip6.arpa {{
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
      ttl 30
  }}
  prometheus :{_METRICS}
  forward . /etc/resolv.conf
  cache 30
  loop
  reload
  loadbalance round_robin
  import custom/*.override
}}
import custom/*.server
"""


def _contents(inputs: Inputs) -> Iterator[Object]:
    yield made(
        CONFIG_MAPS,
        _CUSTOM,
        namespace=KUBE_SYSTEM,
        annotations={keys.IGNORE: "true"},
        data={"changeme.override": _EXAMPLE, "changeme.server": _EXAMPLE},
    )
    yield made(CONFIG_MAPS, NAME, namespace=KUBE_SYSTEM, data={"Corefile": _COREFILE})
    yield _its_service(inputs)
    yield service_account(NAME, KUBE_SYSTEM)
    yield _its_deployment(inputs)
    yield _autoscaler()
    yield _policy(inputs)
    yield disruption_budget(NAME, KUBE_SYSTEM, labels=LABELS)
    name = f"system:{NAME}"
    yield cluster_role(
        name,
        rule("", ("endpoints", "services", "pods", "namespaces"), ("list", "watch")),
        rule("", "nodes", "get"),
        rule("discovery.k8s.io", "endpointslices", ("list", "watch")),
    )
    yield cluster_role_binding(name, NAME, namespace=KUBE_SYSTEM, is_replaceable=True)


def _its_service(inputs: Inputs) -> Object:
    ports: list[Object] = [
        {"name": name, "port": 53, "targetPort": _DNS, "protocol": protocol}
        for name, protocol in (("dns", "UDP"), ("dns-tcp", "TCP"))
    ]
    ports.append({"name": "metrics", "port": _METRICS, "targetPort": _METRICS})
    labels = {**LABELS, "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"}
    spec = {
        "clusterIP": inputs.dns_address,
        "clusterIPs": [inputs.dns_address],
        "ports": ports,
        "selector": LABELS,
    }
    made_service = service(_SERVICE, namespace=KUBE_SYSTEM, ports=(), selects=LABELS, labels=labels)
    return {**made_service, "spec": spec}


def _its_deployment(inputs: Inputs) -> Object:
    mounts = [
        {"name": "config-volume", "mountPath": _DIRECTORY, "readOnly": True},
        {"name": "custom-config-volume", "mountPath": f"{_DIRECTORY}/custom", "readOnly": True},
    ]
    ports = [("dns-udp", _DNS, "UDP"), ("dns-tcp", _DNS, "TCP"), ("metrics", _METRICS, "TCP")]
    its_container = container(
        NAME,
        inputs.image(NAME),
        cpu="50m",
        memory="15Mi",
        args=["-conf", f"{_DIRECTORY}/Corefile"],
        env=[{"name": "KUBERNETES_SERVICE_HOST", "value": inputs.host_in_pods}],
        ports=[{"name": name, "containerPort": number, "protocol": protocol} for name, number, protocol in ports],
        livenessProbe={
            "httpGet": {"path": "/health", "port": _HEALTH, "scheme": "HTTP"},
            "initialDelaySeconds": 60,
            "timeoutSeconds": 5,
            "successThreshold": 1,
            "failureThreshold": 5,
        },
        readinessProbe={
            "httpGet": {"path": "/ready", "port": _READY, "scheme": "HTTP"},
            "initialDelaySeconds": 30,
            "timeoutSeconds": 2,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 1,
        },
        securityContext={
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["all"], "add": ["NET_BIND_SERVICE"]},
            "readOnlyRootFilesystem": True,
        },
        volumeMounts=mounts,
    )
    its_container["resources"]["limits"] = {"memory": "1500Mi"}
    pod = {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": NAME,
        "dnsPolicy": "Default",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "fsGroup": 1,
            "supplementalGroups": [1],
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [its_container],
        "volumes": [
            {"name": "config-volume", "configMap": {"name": NAME, "items": [{"key": "Corefile", "path": "Corefile"}]}},
            {"name": "custom-config-volume", "configMap": {"name": _CUSTOM, "defaultMode": 0o644, "optional": True}},
        ],
    }
    restarted = inputs.now if _RESTART in inputs.tasks else _last_restart(inputs)
    return deployment(
        NAME,
        namespace=KUBE_SYSTEM,
        labels={**LABELS, **SYSTEM_COMPONENT, keys.HIGH_AVAILABILITY_TYPE: "server"},
        selects=LABELS,
        pod_labels=SYSTEM_COMPONENT,
        pod_annotations={_RESTARTED: restarted} if restarted else None,
        pod=pod,
        replicas=_LEAST,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    )


def _last_restart(inputs: Inputs) -> str:
    return "".join(text(at(each, *_ANNOTATIONS, _RESTARTED)) for each in inputs.live[NAME])


def _autoscaler() -> Object:
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
    spec = {
        "scaleTargetRef": {**DEPLOYMENTS.type_meta, "name": NAME},
        "minReplicas": _LEAST,
        "maxReplicas": _MOST,
        "metrics": [{"type": "Resource", "resource": metric}],
    }
    labels = {keys.HIGH_AVAILABILITY_TYPE: "server"}
    return made(HORIZONTAL_POD_AUTOSCALERS, NAME, namespace=KUBE_SYSTEM, labels=labels, spec=spec)


def _policy(inputs: Inputs) -> Object:
    out = [{"port": 443, "protocol": "TCP"}, {"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
    into = [(_METRICS, "TCP"), (_DNS, "TCP"), (_DNS, "UDP")]
    networks = inputs.networks
    callers: list[Object] = [{"namespaceSelector": {}, "podSelector": {}}]
    callers += [{"ipBlock": {"cidr": each}} for each in (networks.nodes, networks.pods) if each]
    spec = {
        "podSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "In", "values": [_SERVICE]}]},
        "policyTypes": ["Ingress", "Egress"],
        "egress": [{"ports": out}],
        "ingress": [{"from": callers, "ports": [{"port": port, "protocol": name} for port, name in into]}],
    }
    described = "Pods reach CoreDNS, and CoreDNS reaches the API server and the DNS servers of its node."
    notes = {"gardener.cloud/description": described}
    return made(NETWORK_POLICIES, "gardener.cloud--allow-dns", namespace=KUBE_SYSTEM, annotations=notes, spec=spec)


COMPONENT = Component(
    name=NAME,
    title="CoreDNS system component",
    contents=_contents,
    reads={NAME: Read(DEPLOYMENTS, Key(KUBE_SYSTEM, NAME))},
    task="dns",
    results=[INFRASTRUCTURE],
    after=[*ON_NODES, "systems-ready"],
    carries_out=_RESTART,
)
