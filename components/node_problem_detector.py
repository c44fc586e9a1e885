"""Detector of problems on nodes, which reports them in their conditions."""

from collections.abc import Iterator

from components.access import cluster_role, cluster_role_binding, rule, service_account
from components.component import ON_NODES, Component
from components.inputs import Inputs
from components.namespaces import KUBE_SYSTEM
from components.shoot_pods import PRIORITY, SECCOMP, SYSTEM_COMPONENT, TO_API_SERVER, TO_NAMES
from components.workloads import ON_ALL_NODES, container, daemon_set, service
from gardener import keys
from kube.objects import Object

NAME = "node-problem-detector"
_INSTANCE = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": "shoot-core"}
_APP = {"app": NAME}
_PORT = 20257
_COMMAND = (
    f"exec /{NAME}",
    "--logtostderr",
    "--config.system-log-monitor=/config/kernel-monitor.json,/config/docker-monitor.json,/config/systemd-monitor.json",
    "..",
    "--config.custom-plugin-monitor=/config/kernel-monitor-counter.json,/config/systemd-monitor-counter.json",
    "..",
    "--config.system-stats-monitor=/config/system-stats-monitor.json",
    f"--prometheus-port={_PORT}",
)
_FROM_HOST = (
    ("log", "/var/log/journal", ""),
    ("localtime", "/etc/localtime", "FileOrCreate"),
    ("kmsg", "/dev/kmsg", ""),
)
"""Volume, path, and type."""


def _contents(inputs: Inputs) -> Iterator[Object]:
    labels = {**_APP, **_INSTANCE, keys.ROLE: keys.ROLE_SYSTEM_COMPONENT}
    made_service = service(NAME, namespace=KUBE_SYSTEM, ports=(), selects=_INSTANCE, labels=labels)
    ports = [{"port": _PORT, "targetPort": _PORT, "protocol": "TCP"}]
    yield {**made_service, "spec": {"selector": _INSTANCE, "ports": ports}}
    yield service_account(NAME, KUBE_SYSTEM, labels=_INSTANCE)
    yield _daemon_set(inputs)
    yield cluster_role(
        NAME,
        rule("", "nodes", "get"),
        rule("", "nodes/status", "patch"),
        rule("", "events", ("create", "patch", "update")),
        labels=_INSTANCE,
    )
    yield cluster_role_binding(NAME, NAME, namespace=KUBE_SYSTEM, labels=_INSTANCE, is_replaceable=True)


def _daemon_set(inputs: Inputs) -> Object:
    its_container = container(
        NAME,
        inputs.image(NAME),
        cpu="20m",
        memory="20Mi",
        command=["/bin/sh", "-c", " ".join(_COMMAND)],
        env=[
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "KUBERNETES_SERVICE_HOST", "value": inputs.host_in_pods},
        ],
        ports=[{"name": "exporter", "containerPort": _PORT}],
        securityContext={"privileged": True},
        volumeMounts=[{"name": name, "mountPath": path, "readOnly": True} for name, path, _ in _FROM_HOST],
    )
    its_container["resources"]["limits"] = {"memory": "500Mi"}
    pod = {
        "dnsPolicy": "Default",
        "priorityClassName": PRIORITY.format(900),
        "securityContext": SECCOMP,
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": 30,
        "tolerations": ON_ALL_NODES,
        "containers": [its_container],
        "volumes": [
            {"name": name, "hostPath": {"path": path, **({"type": kind} if kind else {})}}
            for name, path, kind in _FROM_HOST
        ],
    }
    return daemon_set(
        NAME,
        namespace=KUBE_SYSTEM,
        labels={**_INSTANCE, **SYSTEM_COMPONENT},
        selects={**_APP, **_INSTANCE},
        pod_labels={**SYSTEM_COMPONENT, **dict.fromkeys((TO_API_SERVER, TO_NAMES), keys.ALLOWED)},
        pod=pod,
        updateStrategy={},
    )


COMPONENT = Component(
    name=NAME, title=f"{NAME} system component", contents=_contents, after=[*ON_NODES, "systems-ready"]
)
