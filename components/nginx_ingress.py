"""The ingress controller of a seed, for pages for operators: dashboards and metrics.

It is behind the ingress gateway, which passes TLS for the Seed's ingress domain through to it.
"""

from collections.abc import Iterator

from components import istio
from components.access import (
    FOLLOW,
    READ,
    cluster_role,
    cluster_role_binding,
    role,
    role_binding,
    rule,
    service_account,
)
from components.parts import GARDEN, autoscaler, in_seed, made
from components.seed_component import SeedComponent, SeedInputs
from components.workloads import (
    REACHES_API_SERVER,
    container,
    deployment,
    port,
    service,
)
from gardener import keys
from gardener.api.seed_definitions import Stage
from gardener.references import CONFIG_MAP, annotation_key, make_unique
from kube.objects import Object, key
from kube.resources import CONFIG_MAPS, INGRESS_CLASSES, POD_DISRUPTION_BUDGETS

NAME = "nginx-ingress"
CLASS = "nginx-ingress-gardener"
"""Class of the Ingresses that it serves."""
CONTROLLER, BACKEND = "nginx-ingress-controller", "nginx-ingress-k8s-backend"
_APP = {"app": NAME}
_LABELS = {**_APP, "component": "controller"}
_BACKEND_LABELS = {**_APP, "component": BACKEND}
_RELEASE = {"release": "addons"}
_ROLE = "gardener.cloud:seed:nginx-ingress"
_LEADER = "ingress-controller-seed-leader"
_PRIORITY = "gardener-system-600"
_BACKEND_PORT = 8080
_SECONDS_TO_END = 60


def _objects(inputs: SeedInputs) -> list[Object]:
    return in_seed(NAME, _contents(inputs))


def _contents(inputs: SeedInputs) -> Iterator[Object]:
    yield service_account(NAME, GARDEN, labels=_APP)
    yield cluster_role(_ROLE, *_rules(), labels=_APP)
    yield cluster_role_binding(_ROLE, NAME, namespace=GARDEN, labels=_APP)
    own = f"{_ROLE}:role"
    yield role(own, GARDEN, *_own_rules(), labels=_APP)
    yield role_binding(f"{own}-binding", GARDEN, NAME, role=own, labels=_APP)
    yield made(INGRESS_CLASSES, CLASS, labels=_LABELS, spec={"controller": f"k8s.io/{CLASS}"})
    settings = {
        "allow-snippet-annotations": "true",
        "server-name-hash-bucket-size": "256",
        "use-proxy-protocol": "false",
        "worker-processes": "2",
    }
    config_map = make_unique(made(CONFIG_MAPS, CONTROLLER, namespace=GARDEN, labels=_LABELS, data=settings))
    yield config_map
    yield _controller(inputs, key(config_map).name)
    yield _backend(inputs)
    yield from _services()
    budget = {"minAvailable": 1, "selector": {"matchLabels": _LABELS}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    yield made(POD_DISRUPTION_BUDGETS, CONTROLLER, namespace=GARDEN, labels=_LABELS, spec=budget)
    policy = {"containerName": "*", "minAllowed": {"memory": "100Mi"}}
    yield autoscaler(CONTROLLER, GARDEN, deployment=CONTROLLER, policy=policy)
    yield from istio.passed_through(
        CONTROLLER, [f"*.{inputs.ingress_domain}"], gateway=inputs.config.sni.ingress.labels, labels=_LABELS
    )


def _services() -> Iterator[Object]:
    selectors = f'[{{"matchLabels":{{"{keys.ROLE}":"{keys.ROLE_ISTIO_INGRESS}"}}}}]'
    reached = {istio.EXPORT: "*", keys.NAMESPACE_SELECTORS: selectors}
    ports = [port("http", 80), port("https", 443)]
    yield service(CONTROLLER, ports=ports, selects=_LABELS, labels=_LABELS, annotations=reached)
    plain = {"port": 80, "targetPort": _BACKEND_PORT}
    yield service(BACKEND, ports=[plain], selects=_BACKEND_LABELS, labels=_BACKEND_LABELS)


def _controller(inputs: SeedInputs, config_map: str) -> Object:
    arguments = [
        "/nginx-ingress-controller",
        f"--default-backend-service={GARDEN}/{BACKEND}",
        "--enable-ssl-passthrough=true",
        f"--publish-service={GARDEN}/{CONTROLLER}",
        f"--election-id={_LEADER}",
        "--update-status=true",
        "--annotations-prefix=nginx.ingress.kubernetes.io",
        f"--configmap={GARDEN}/{config_map}",
        f"--ingress-class={CLASS}",
        f"--controller-class=k8s.io/{CLASS}",
        "--enable-annotation-validation=true",
    ]
    probe = {"httpGet": {"path": "/healthz", "port": 10254, "scheme": "HTTP"}, "initialDelaySeconds": 40}
    its_container = container(
        CONTROLLER,
        inputs.images.nginx_ingress_controller,
        cpu="100m",
        memory="375Mi",
        args=arguments,
        env=[
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{path}"}}}
            for name, path in (("POD_NAME", "name"), ("POD_NAMESPACE", "namespace"))
        ],
        ports=[
            {"name": name, "containerPort": number, "protocol": "TCP"}
            for name, number in (("http", 80), ("https", 443))
        ],
        livenessProbe=probe,
        readinessProbe=probe,
        securityContext={
            "allowPrivilegeEscalation": True,
            "capabilities": {"add": ["NET_BIND_SERVICE", "SYS_CHROOT"], "drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 101,
            "seccompProfile": {"type": "Unconfined"},
        },
    )
    its_container["resources"]["limits"] = {"memory": "1500Mi"}
    pod = {
        "containers": [its_container],
        "priorityClassName": _PRIORITY,
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": _SECONDS_TO_END,
    }
    its_deployment = deployment(
        CONTROLLER,
        labels=_LABELS,
        selects={**_LABELS, **_RELEASE},
        pod_labels={
            **REACHES_API_SERVER,
            f"{keys.TO_PREFIX}{BACKEND}-tcp-{_BACKEND_PORT}": keys.ALLOWED,
            f"seccompprofile.{keys.GROUP}/skip": "true",
        },
        pod=pod,
        replicas=2,
    )
    return _protecting(its_deployment, config_map)


def _protecting(its_deployment: Object, config_map: str) -> Object:
    """Annotate the Deployment with the ConfigMap, which only an argument names, so that it is not garbage-collected."""
    notes = {annotation_key(CONFIG_MAP, config_map): config_map}
    its_deployment["metadata"]["annotations"] = notes
    its_deployment["spec"]["template"]["metadata"]["annotations"] = notes
    return its_deployment


def _backend(inputs: SeedInputs) -> Object:
    probe = {"path": "/healthy", "port": _BACKEND_PORT, "scheme": "HTTP"}
    its_container = container(
        BACKEND,
        inputs.images.ingress_default_backend,
        cpu="20m",
        memory="20Mi",
        livenessProbe={"httpGet": probe, "initialDelaySeconds": 30, "timeoutSeconds": 5},
        ports=[{"containerPort": _BACKEND_PORT, "protocol": "TCP"}],
    )
    its_container["resources"]["limits"] = {"memory": "100Mi"}
    pod = {
        "containers": [its_container],
        "priorityClassName": _PRIORITY,
        "securityContext": {"fsGroup": 65534, "runAsNonRoot": True, "runAsUser": 65534},
        "terminationGracePeriodSeconds": _SECONDS_TO_END,
    }
    return deployment(BACKEND, labels=_BACKEND_LABELS, selects={**_BACKEND_LABELS, **_RELEASE}, pod=pod)


def _rules() -> Iterator[Object]:
    yield rule("", ("endpoints", "nodes", "pods", "secrets"), FOLLOW)
    yield rule("", "nodes", "get")
    yield rule("", ("services", "configmaps"), ("get", "list", "update", "watch"))
    yield rule("networking.k8s.io", "ingresses", READ)
    yield rule("", "events", ("create", "patch"))
    yield rule("networking.k8s.io", "ingresses/status", "update")
    yield rule("networking.k8s.io", "ingressclasses", READ)
    yield rule("coordination.k8s.io", "leases", FOLLOW)
    yield rule("discovery.k8s.io", "endpointslices", READ)


def _own_rules() -> Iterator[Object]:
    yield rule("", ("configmaps", "namespaces", "pods", "secrets"), "get")
    yield rule("", "endpoints", ("create", "get", "update"))
    yield rule("coordination.k8s.io", "leases", ("get", "update"), names=[_LEADER])
    yield rule("coordination.k8s.io", "leases", "create")
    yield rule("discovery.k8s.io", "endpointslices", READ)


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
