"""What members of a Project, and holders of a token by which nodes join, try in a garden, and how long others wait.

    python -m tests.attacks.projects

Garden, controller manager and webhooks are real processes; members have the rights that the controller manager gives.
"""

import secrets
import sys
import time
from collections.abc import Callable
from functools import partial

from devcluster.cluster import Cluster
from devcluster.program import Program
from gardener.api.garden import PROJECTS
from kit.eventually import eventually
from kit.garden import CONFIRMED, Garden, installed
from kit.garden_shoots import ShootPlace
from kube.errors import ApiError, Forbidden
from kube.objects import Object
from kube.paths import at
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, CLUSTER_ROLES, NAMESPACES, SECRETS

_LONGEST_SECONDS = 300.0
_RBAC = "rbac.authorization.k8s.io"
_MANAGER = {
    "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
    "kind": "ControllerManagerConfiguration",
    "leaderElection": {"leaderElect": False},
}


def user(name: str, *roles: str) -> Object:
    return {"kind": "User", "apiGroup": _RBAC, "name": name, **({"roles": list(roles)} if roles else {})}


def ready(garden: Garden, name: str, **spec: object) -> float:
    """Seconds from the creation of a Project until it is Ready."""
    begin = time.monotonic()
    garden.create(PROJECTS, name, spec=spec)
    is_ready = lambda: at(garden.get(PROJECTS, name), "status", "phase") == "Ready"  # noqa: E731
    eventually(is_ready, f"{name} to be Ready", seconds=_LONGEST_SECONDS)
    return time.monotonic() - begin


def answer(attack: Callable[[], object]) -> str:
    """The code, and why."""
    try:
        attack()
    except ApiError as error:
        return f"{error.status}"
    return "accepted"


# --- attacks


def owner(garden: Garden, project: str) -> str:
    """An admin without the verb for it gives the Project away."""
    adam = garden.as_user("adam")
    return answer(lambda: adam.patch(PROJECTS, project, {"spec": {"owner": user("eve")}}))


def invented_roles(garden: Garden, project: str) -> str:
    """The owner gives 20 ServiceAccounts 63 extension roles each."""
    members = [*garden.get(PROJECTS, project)["spec"]["members"], *_accounts(lambda i, j: f"r-{i}-{j}")]
    return answer(lambda: garden.as_user("mallory").patch(PROJECTS, project, {"spec": {"members": members}}))


def carried_roles(garden: Garden, project: str) -> str:
    """As many as there may be, for as many members as before."""
    for number in range(20):
        labels = {"rbac.gardener.cloud/aggregate-to-extension-role": f"c{number}"}
        garden.create(CLUSTER_ROLES, f"carried-{number}", metadata={"labels": labels}, rules=[])
    members = [*garden.get(PROJECTS, project)["spec"]["members"], *_accounts(lambda _, j: f"c{j % 20}")]
    return answer(lambda: garden.as_user("mallory").patch(PROJECTS, project, {"spec": {"members": members}}))


def _accounts(role: Callable[[int, int], str]) -> list[Object]:
    def roles(number: int) -> list[str]:
        return list(dict.fromkeys(f"extension:{role(number, each)}" for each in range(63)))

    return [{"kind": "ServiceAccount", "namespace": "x", "name": f"s{n}", "roles": roles(n)} for n in range(20)]


def kept_secret(garden: Garden, project: str) -> str:
    """A Secret with the label of internal domains is deleted, while there is a Shoot elsewhere."""
    labels = {"gardener.cloud/role": "internal-domain"}
    namespace = f"garden-{project}"
    garden.create(SECRETS, "stuck", namespace=namespace, metadata={"labels": labels})
    return answer(lambda: garden.delete(SECRETS, "stuck", namespace=namespace))


def foreground(garden: Garden, project: str) -> str:
    """The garbage collector is to delete a namespace that was there before."""
    mallory = garden.as_user("mallory")
    mallory.patch(PROJECTS, project, CONFIRMED)
    options = {"propagationPolicy": "Foreground"}
    return answer(lambda: garden.cluster.api.request("DELETE", PROJECTS.path(name=project), options))


def join_token(garden: Garden, _: str) -> str:
    """A token by which nodes join requests the certificate of a Seed."""
    groups = ("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated")
    access = {"group": CERTIFICATE_SIGNING_REQUESTS.group, "resource": CERTIFICATE_SIGNING_REQUESTS.plural}
    spec = {"user": "system:bootstrap:abcdef", "groups": groups, "resourceAttributes": {**access, "verb": "create"}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    review = garden.cluster.api.create(path, {"spec": spec})
    return "accepted" if at(review, "status", "allowed") else "403"


ATTACKS = (owner, invented_roles, carried_roles, kept_secret, foreground, join_token)


def main() -> int:
    with Cluster() as cluster:
        garden = installed(cluster)
        groups = ("system:serviceaccounts", "system:serviceaccounts:garden", "system:authenticated")
        account = cluster.kubeconfig_for("system:serviceaccount:garden:gardener-controller-manager", groups)
        Program("agent", cluster, _MANAGER, name="controller-manager", kubeconfig=account).start()
        ShootPlace(garden).shoot()
        print(f"| Attack | Answer | Another Project Ready after, s |\n|---|---|---|\n| none | | {_calm(garden):.1f} |")
        for attack in ATTACKS:
            project = _project(garden)
            reported = attack(garden, project)
            print(f"| {(attack.__doc__ or '').rstrip('.')} | {reported} | {_calm(garden):.1f} |", flush=True)
    return 0


def _project(garden: Garden) -> str:
    """The name of one with a namespace that was there before, whose owner has his rights."""
    name = f"p{secrets.token_hex(3)}"
    labels = {"gardener.cloud/role": "project", "project.gardener.cloud/name": name}
    garden.create(NAMESPACES, f"garden-{name}", metadata={"labels": labels})
    ready(garden, name, namespace=f"garden-{name}", owner=user("mallory"), members=[user("adam", "admin")])
    for member in ("mallory", "adam"):
        eventually(partial(garden.as_user(member).get, PROJECTS, name), f"the rights of {member}", passing=(Forbidden,))
    return name


def _calm(garden: Garden) -> float:
    return ready(garden, f"c{secrets.token_hex(3)}")


if __name__ == "__main__":
    sys.exit(main())
