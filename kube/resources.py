"""Names of kinds in paths, and the kinds of Kubernetes itself that programs work with."""

from dataclasses import dataclass, field
from urllib.parse import quote

from kube.errors import NotFound
from kube.objects import Key

_BY_NAME = ("", "apps", "autoscaling", "batch", "extensions", "policy")
_BY_DOMAIN = (
    *("admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates"),
    *("coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "networking", "node"),
    *("rbac.authorization", "resource", "scheduling", "storage", "storagemigration"),
)
BUILT_IN_GROUPS = frozenset((*_BY_NAME, *(f"{name}.k8s.io" for name in _BY_DOMAIN)))
"""API groups of Kubernetes itself. The kinds served in them depend only on the version of the API server."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Kind as the API server serves it: `Resource("apps", "v1", "Deployment", "deployments", True)`."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Short names accepted by kubectl."""
    any_size: bool = field(default=False, compare=False, repr=False)
    """Whether a list may be of any size, as lists of built-in kinds: its API server is trusted."""

    def __hash__(self) -> int:
        """Hash of the fields that identify a kind: lookups by kind are on the hot path."""
        return hash((self.group, self.plural))

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def type_meta(self) -> dict[str, str]:
        """Fields of an object that identify its kind."""
        return {"apiVersion": self.api_version, "kind": self.kind}

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """URL path of the collection (no name: of all namespaces if none is given) or of one object.

        Raises:
            NotFound: no object can have this name; the API server decodes slashes in any notation, so that the path
            would lead to another object.
        """
        parts = ["/apis" if self.group else "/api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", _segment("namespace", namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_segment("resource name", name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def path_of(self, name: Key, subresource: str = "") -> str:
        """URL path of one object. Raises NotFound as `path` does."""
        return self.path(namespace=name.namespace, name=name.name, subresource=subresource)

    def reference(self, *, namespace: str = "", name: str, uid: str) -> dict[str, str]:
        """Reference to an object, as in Events and owner references."""
        place = {"namespace": namespace} if namespace else {}
        return {**self.type_meta, **place, "name": name, "uid": uid}

    def __str__(self) -> str:
        return f"{self.plural}.{self.version}.{self.group}" if self.group else f"{self.plural}.{self.version}"


def _segment(what: str, text: str) -> str:
    problems = [f"may not be '{text}'"] if text in {".", ".."} else []
    problems += [f"may not contain '{char}'" for char in "/%" if char in text]
    if problems:
        message = f'invalid {what} "{text}": [{" ".join(problems)}]'
        raise NotFound(404, message=message, reason="NotFound", details={"name": text})
    return quote(text, safe="")


CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
EVENTS = Resource("", "v1", "Event", "events", namespaced=True)
NEW_EVENTS = Resource("events.k8s.io", "v1", "Event", "events", namespaced=True)
"""Events in their newer API; the same objects."""
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
RESOURCE_QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas", namespaced=True)
SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
PODS = Resource("", "v1", "Pod", "pods", namespaced=True)
SERVICES = Resource("", "v1", "Service", "services", namespaced=True)
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
VOLUME_CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True)
VOLUMES = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
ENDPOINTS = Resource("", "v1", "Endpoints", "endpoints", namespaced=True)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", namespaced=True)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True)
DAEMON_SETS = Resource("apps", "v1", "DaemonSet", "daemonsets", namespaced=True)
CONTROLLER_REVISIONS = Resource("apps", "v1", "ControllerRevision", "controllerrevisions", namespaced=True)
REPLICA_SETS = Resource("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
REPLICATION_CONTROLLERS = Resource("", "v1", "ReplicationController", "replicationcontrollers", namespaced=True)
JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)
CRON_JOBS = Resource("batch", "v1", "CronJob", "cronjobs", namespaced=True)
HORIZONTAL_POD_AUTOSCALERS = Resource(
    "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True
)
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", namespaced=True)
INGRESSES = Resource("networking.k8s.io", "v1", "Ingress", "ingresses", namespaced=True)
INGRESS_CLASSES = Resource("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False)
RBAC_GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Resource(RBAC_GROUP, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(RBAC_GROUP, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
ROLES = Resource(RBAC_GROUP, "v1", "Role", "roles", namespaced=True)
ROLE_BINDINGS = Resource(RBAC_GROUP, "v1", "RoleBinding", "rolebindings", namespaced=True)
CSI_NODES = Resource("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False)
CERTIFICATE_SIGNING_REQUESTS = Resource(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
SELF_SUBJECT_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False
)
SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
SELF_SUBJECT_RULES_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False
)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", namespaced=True)
ADMISSION_GROUP = "admissionregistration.k8s.io"
MUTATING_WEBHOOKS = Resource(
    ADMISSION_GROUP, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING_WEBHOOKS = Resource(
    ADMISSION_GROUP, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
