"""Objects of many kinds, as manifests of real projects have them: what `kit.bundles.bundle` chooses from.

Every kind that an API server has built in and that can be created without harm to others, and kinds of the bundle's
own. Fields are written as people write them, not as the API server gives them back: `1000m` for one CPU, a port as a
name, `null` and `{}` left over by tools, defaults half spelled out.
"""

import base64
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kube.objects import Object


class Octal(int):
    """A number that is written as people write file modes: 0644."""


@dataclass(frozen=True, slots=True)
class World:
    """What the objects of one bundle have in common; names of cluster-scoped objects begin with the prefix."""

    prefix: str
    random: random.Random

    @property
    def namespaces(self) -> tuple[str, str]:
        """Where objects live."""
        return (f"{self.prefix}-blue", f"{self.prefix}-green")

    @property
    def limited(self) -> str:
        """The namespace of limits and quotas, which would change the objects of others."""
        return f"{self.prefix}-limited"

    @property
    def group(self) -> str:
        return f"{self.prefix}.example.com"

    def word(self) -> str:
        return self.random.choice(("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "islet"))


Make = Callable[[World, str], Object]


@dataclass(frozen=True, slots=True)
class Kind:
    """`make` gives the fields of an object beside apiVersion, kind and name."""

    api_version: str
    name: str
    make: Make
    namespaced: bool = True
    is_light: bool = True
    """Whether dozens of them cost the cluster nothing."""

    @property
    def plural(self) -> str:
        name = self.name.lower()
        return f"{name[:-1]}ies" if name.endswith("y") else name + ("es" if name.endswith("s") else "s")


OWN_GROUP = "<own>/v1"
"""Stands for the group of the bundle's own kinds."""
KINDS: list[Kind] = []


def _kind(api_version: str, name: str, *, namespaced: bool = True, is_light: bool = True) -> Callable[[Make], Make]:
    def listed(make: Make) -> Make:
        KINDS.append(Kind(api_version, name, make, namespaced=namespaced, is_light=is_light))
        return make

    return listed


# --- parts that several kinds have


def _labels(world: World, name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/version": f"1.{world.random.randrange(30)}"}


def _pod(world: World, *, restart: str | None = None) -> Object:
    container: Object = {
        "name": world.word(),
        "image": f"registry.example.com/{world.word()}:v1.{world.random.randrange(9)}",
        "args": ["--verbosity=2", f"--name={world.word()}", "-c", "echo 'it''s' \"so\""],
        "env": [{"name": "FLAG", "value": "yes"}, {"name": "LEVEL", "value": "08"}],
        "ports": [{"containerPort": 8080, "name": "http"}],
        "resources": {
            "requests": {"cpu": world.random.choice(("0.5", "500m", 1, "1000m")), "memory": "64Mi"},
            "limits": {"memory": world.random.choice(("1024Mi", "1Gi", "0.5Gi"))},
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    pod: Object = {"containers": [container], "volumes": [{"name": "scratch", "emptyDir": {}}], "nodeSelector": None}
    return pod if restart is None else {**pod, "restartPolicy": restart}


def _workload(world: World, name: str, **spec: Any) -> Object:
    # One and the same mapping three times: written as an anchor and its aliases.
    labels = _labels(world, name)
    return {
        "metadata": {"labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "creationTimestamp": None}, "spec": _pod(world)},
            **spec,
        },
    }


def _nothing() -> Object:
    """Selects no object of anybody."""
    return {"matchLabels": {"bundles.example.com/matches": "nothing"}}


# --- the kinds


def _namespace(world: World, name: str) -> Object:
    return {"metadata": {"labels": {"team": world.word(), "pod-security.kubernetes.io/enforce": "privileged"}}}


@_kind("v1", "ConfigMap")
def _config_map(world: World, name: str) -> Object:
    lines = [f"{world.word()} = {world.random.randrange(1000)}" for _ in range(world.random.randrange(2, 30))]
    data = {
        "settings.ini": "\n".join(["[main]", *lines, ""]),
        "enabled": world.random.choice(("y", "no", "on", "true", "~", "null")),
        "mode": world.random.choice(("0644", "0o17", "1e3", "12:30", "2024-01-02", "=", "0x1F", "1_000", ".5")),
        "notes": "  indented, with a tab\tand trailing space \n\n# no comment: #1\nünïcode ☂",
        "empty": "",
    }
    return {"data": data, "binaryData": {"blob": base64.b64encode(world.random.randbytes(40)).decode()}}


@_kind("v1", "Secret")
def _secret(world: World, name: str) -> Object:
    secret = base64.b64encode(world.random.randbytes(24)).decode()
    if world.random.random() < 0.3:
        return {"type": "Opaque", "stringData": {"user": world.word()}, "data": {"password": secret}}
    return {"type": "Opaque", "data": {"password": secret, "empty": ""}}


@_kind("v1", "ServiceAccount")
def _service_account(world: World, name: str) -> Object:
    return {"automountServiceAccountToken": world.random.random() < 0.5}


def _rules(world: World) -> list[Object]:
    verbs = world.random.sample(("get", "list", "watch", "create", "update", "patch", "delete"), 3)
    return [
        {"apiGroups": ["", "apps"], "resources": ["configmaps", "deployments"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [world.word()], "verbs": ["get"]},
    ]


@_kind("rbac.authorization.k8s.io/v1", "ClusterRole", namespaced=False)
@_kind("rbac.authorization.k8s.io/v1", "Role")
def _role(world: World, name: str) -> Object:
    return {"rules": _rules(world)}


@_kind("rbac.authorization.k8s.io/v1", "RoleBinding")
def _role_binding(world: World, name: str) -> Object:
    # The group of the subject is left to the API server.
    return {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"role-{world.word()}"},
        "subjects": [
            {"kind": "ServiceAccount", "name": world.word(), "namespace": world.namespaces[0]},
            {"kind": "User", "name": f"{world.prefix}:{world.word()}"},
        ],
    }


@_kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", namespaced=False)
def _cluster_role_binding(world: World, name: str) -> Object:
    reference = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": f"{world.prefix}-clusterrole-0",
    }
    return {**_role_binding(world, name), "roleRef": reference}


@_kind("apps/v1", "Deployment", is_light=False)
def _deployment(world: World, name: str) -> Object:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}}
    return {**_workload(world, name, replicas=1, strategy=strategy), "status": {}}


@_kind("apps/v1", "StatefulSet", is_light=False)
def _stateful_set(world: World, name: str) -> Object:
    claim = {
        "metadata": {"name": "data", "creationTimestamp": None},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": f"{world.prefix}-storageclass-0",
            "resources": {"requests": {"storage": "1024Mi"}},
        },
    }
    return _workload(world, name, replicas=1, serviceName=name, volumeClaimTemplates=[claim])


@_kind("apps/v1", "DaemonSet", is_light=False)
def _daemon_set(world: World, name: str) -> Object:
    spec = _workload(world, name)
    volume = {"name": "config", "configMap": {"name": "configmap-0", "defaultMode": Octal(0o644)}}
    spec["spec"]["template"]["spec"]["volumes"].append(volume)
    return spec


@_kind("batch/v1", "Job", is_light=False)
def _job(world: World, name: str) -> Object:
    return {"spec": {"backoffLimit": 2, "template": {"spec": _pod(world, restart="Never")}}}


@_kind("batch/v1", "CronJob")
def _cron_job(world: World, name: str) -> Object:
    template = {"spec": {"template": {"spec": _pod(world, restart="OnFailure")}}}
    return {"spec": {"schedule": "*/5 * * * *", "suspend": True, "jobTemplate": template}}


@_kind("v1", "ReplicationController", is_light=False)
def _replication_controller(world: World, name: str) -> Object:
    labels = _labels(world, name)
    return {
        "spec": {"replicas": 0, "selector": labels, "template": {"metadata": {"labels": labels}, "spec": _pod(world)}}
    }


@_kind("apps/v1", "ReplicaSet", is_light=False)
def _replica_set(world: World, name: str) -> Object:
    return _workload(world, name, replicas=0)


@_kind("v1", "Pod", is_light=False)
def _single_pod(world: World, name: str) -> Object:
    return {"metadata": {"labels": _labels(world, name)}, "spec": _pod(world)}


@_kind("v1", "PodTemplate")
def _pod_template(world: World, name: str) -> Object:
    return {"template": {"metadata": {"labels": _labels(world, name)}, "spec": _pod(world)}}


@_kind("apps/v1", "ControllerRevision")
def _controller_revision(world: World, name: str) -> Object:
    return {"revision": world.random.randrange(1, 99), "data": {"color": world.word(), "weights": [1, 2.5, None]}}


@_kind("v1", "Service")
def _service(world: World, name: str) -> Object:
    ports = [
        {"name": "http", "port": 80, "targetPort": "http"},
        {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 5353},
    ]
    selector = _labels(world, name)
    forms: tuple[Object, ...] = (
        {"ports": ports, "selector": selector},
        {"ports": ports, "selector": selector, "clusterIP": "None"},
        {"ports": ports, "selector": selector, "type": "NodePort"},
        {"ports": ports, "selector": selector, "type": "LoadBalancer", "externalTrafficPolicy": "Local"},
        {"type": "ExternalName", "externalName": f"{world.word()}.example.com"},
    )
    return {"spec": world.random.choice(forms)}


@_kind("networking.k8s.io/v1", "Ingress")
def _ingress(world: World, name: str) -> Object:
    backend = {"service": {"name": world.word(), "port": {"name": "http"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    host = f"{world.word()}.example.com"
    rule = {"host": host, "http": {"paths": [path]}}
    return {"spec": {"ingressClassName": f"{world.prefix}-ingressclass-0", "rules": [rule], "tls": [{"hosts": [host]}]}}


@_kind("networking.k8s.io/v1", "IngressClass", namespaced=False)
def _ingress_class(world: World, name: str) -> Object:
    return {"spec": {"controller": f"{world.group}/{world.word()}"}}


@_kind("networking.k8s.io/v1", "NetworkPolicy")
def _network_policy(world: World, name: str) -> Object:
    peers = [{"podSelector": {}}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]
    ingress = [{"from": peers, "ports": [{"port": 8080}, {"port": "http", "protocol": "TCP"}]}]
    return {"spec": {"podSelector": _nothing(), "policyTypes": ["Ingress", "Egress"], "ingress": ingress, "egress": []}}


@_kind("policy/v1", "PodDisruptionBudget")
def _pod_disruption_budget(world: World, name: str) -> Object:
    return {"spec": {"minAvailable": "50%", "selector": _nothing()}}


@_kind("autoscaling/v2", "HorizontalPodAutoscaler")
def _horizontal_pod_autoscaler(world: World, name: str) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"absent-{world.word()}"}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    return {"spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": [metric]}}


@_kind("v1", "PersistentVolumeClaim", is_light=False)
def _persistent_volume_claim(world: World, name: str) -> Object:
    return {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": f"{world.prefix}-storageclass-0",
            "resources": {"requests": {"storage": world.random.choice(("1Gi", "1024Mi", "0.5Gi"))}},
        }
    }


@_kind("v1", "PersistentVolume", namespaced=False, is_light=False)
def _persistent_volume(world: World, name: str) -> Object:
    return {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "2048Mi"},
            "storageClassName": f"{world.prefix}-unused",
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": f"/data/{world.word()}"},
        }
    }


@_kind("storage.k8s.io/v1", "StorageClass", namespaced=False)
def _storage_class(world: World, name: str) -> Object:
    parameters = {"tier": world.word(), "encrypted": "true"}
    return {"provisioner": f"{world.group}/none", "parameters": parameters, "volumeBindingMode": "WaitForFirstConsumer"}


@_kind("scheduling.k8s.io/v1", "PriorityClass", namespaced=False)
def _priority_class(world: World, name: str) -> Object:
    return {"value": world.random.randrange(1000), "description": f"For {world.word()}."}


def _resource_quota(world: World, name: str) -> Object:
    return {"spec": {"hard": {"count/configmaps": "500", "requests.storage": "1024Gi", "pods": 100}}}


def _limit_range(world: World, name: str) -> Object:
    limit = {"type": "Container", "default": {"cpu": "1000m"}, "defaultRequest": {"cpu": 0.1}}
    return {"spec": {"limits": [limit]}}


@_kind("coordination.k8s.io/v1", "Lease")
def _lease(world: World, name: str) -> Object:
    return {"spec": {"holderIdentity": world.word(), "leaseDurationSeconds": 15}}


@_kind("discovery.k8s.io/v1", "EndpointSlice")
def _endpoint_slice(world: World, name: str) -> Object:
    addresses = [f"10.99.0.{world.random.randrange(1, 255)}"]
    return {"addressType": "IPv4", "endpoints": [{"addresses": addresses}], "ports": [{"name": "http", "port": 8080}]}


@_kind("node.k8s.io/v1", "RuntimeClass", namespaced=False)
def _runtime_class(world: World, name: str) -> Object:
    return {"handler": world.word(), "overhead": {"podFixed": {"cpu": "0.25", "memory": "64Mi"}}}


@_kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", namespaced=False, is_light=False)
@_kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", namespaced=False, is_light=False)
def _webhooks(world: World, name: str) -> Object:
    rule = {"apiGroups": [world.group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    webhook = {
        "name": f"{name}.bundles.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": world.namespaces[0], "name": "absent", "path": "/review"}},
        "failurePolicy": "Ignore",
        "namespaceSelector": _nothing(),
        "objectSelector": _nothing(),
        "rules": [rule],
        "sideEffects": "None",
        "timeoutSeconds": 1,
    }
    return {"webhooks": [webhook]}


@_kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", namespaced=False, is_light=False)
def _validating_admission_policy(world: World, name: str) -> Object:
    rule = {"apiGroups": [world.group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["absent"]}
    return {
        "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": {"resourceRules": [rule], "objectSelector": _nothing()},
            "validations": [{"expression": "object.metadata.name != 'x'", "message": 'must not be "x"'}],
        }
    }


@_kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", namespaced=False, is_light=False)
def _validating_admission_policy_binding(world: World, name: str) -> Object:
    policy = f"{world.prefix}-validatingadmissionpolicy-0"
    return {"spec": {"policyName": policy, "validationActions": ["Audit"]}}


@_kind("storage.k8s.io/v1", "CSIDriver", namespaced=False, is_light=False)
def _csi_driver(world: World, name: str) -> Object:
    return {"spec": {"attachRequired": False, "volumeLifecycleModes": ["Ephemeral"]}}


@_kind("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", namespaced=False, is_light=False)
def _priority_level(world: World, name: str) -> Object:
    queuing = {"queues": 4, "handSize": 2, "queueLengthLimit": 10}
    limited = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Queue", "queuing": queuing}}
    return {"spec": {"type": "Limited", "limited": limited}}


@_kind("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", namespaced=False, is_light=False)
def _flow_schema(world: World, name: str) -> Object:
    subject = {"kind": "User", "user": {"name": f"{world.prefix}:stranger"}}
    rule = {"verbs": ["get"], "apiGroups": [world.group], "resources": ["absent"], "clusterScope": True}
    return {
        "spec": {
            "priorityLevelConfiguration": {"name": f"{world.prefix}-prioritylevelconfiguration-0"},
            "matchingPrecedence": 9000,
            "rules": [{"subjects": [subject], "resourceRules": [rule]}],
        }
    }


def _definition(kind: str, scope: str) -> Make:
    properties = {
        "size": {"type": "integer", "default": 3},
        "color": {"type": "string"},
        "limits": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}

    plural = f"{kind.lower()}s"

    def make(world: World, name: str) -> Object:
        names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
        return {
            "metadata": {"name": f"{plural}.{world.group}"},
            "spec": {"group": world.group, "names": names, "scope": scope, "versions": [version]},
            # Left over by a generator.
            "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": []},
        }

    return make


@_kind(OWN_GROUP, "Gadget", namespaced=False)
@_kind(OWN_GROUP, "Widget")
def _custom(world: World, name: str) -> Object:
    free = {"deep": [{"a": [1, "1", True, None, 1.5]}], "text": "multi\nline\n"}
    return {"spec": {"color": world.word(), "limits": {"cpu": "1000m", "count": 5}, "free": free}}


NAMESPACE = Kind("v1", "Namespace", _namespace, namespaced=False)
LIMITS = (Kind("v1", "LimitRange", _limit_range), Kind("v1", "ResourceQuota", _resource_quota))
DEFINITIONS = tuple(
    Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", _definition(kind, scope), namespaced=False)
    for kind, scope in (("Widget", "Namespaced"), ("Gadget", "Cluster"))
)
