"""Rights that tests give."""

from functools import partial

from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.objects import role, role_binding, user
from kube.objects import Object
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES


def may(cluster: Cluster, name: str, verb: str, resource: str, *, namespace: str = "", group: str = "") -> bool:
    """Whether a user may, by what the API server knows by now; it learns of changes a moment later."""
    plural, _, subresource = resource.partition("/")
    attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": plural, "subresource": subresource}
    review = {"spec": {"user": name, "resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(cluster.api.create(path, review)["status"]["allowed"])


def grant(cluster: Cluster, name: str, *rules: Object, namespace: str = "", subject: Object | None = None) -> None:
    """A role and its binding, both of that name: for the user of that name unless another subject is given.

    Args: namespace: none: in all of them, and for what has none.
    """
    of, binding = (ROLES, ROLE_BINDINGS) if namespace else (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
    cluster.api.create(of.path(namespace=namespace), role(name, *rules, kind=of))
    bound = role_binding(name, subject or user(name), of=of, namespace=namespace)
    cluster.api.create(binding.path(namespace=namespace), bound)


def until_granted(
    cluster: Cluster, name: str, verb: str, resource: str, *, namespace: str = "", group: str = ""
) -> None:
    allowed = partial(may, cluster, name, verb, resource, namespace=namespace, group=group)
    eventually(allowed, f"{name} to be allowed to {verb}")


def revoke(cluster: Cluster, name: str) -> None:
    """What was granted in all namespaces."""
    for resource in (CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES):
        cluster.api.delete(resource.path(name=name))
