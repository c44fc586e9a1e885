"""What a user may do by RBAC, and which of it was done.

A right is one verb for one resource, or for one object of a name. Wildcards are rights for everything, of which no
single use can be reported; `Rights.unused` leaves them out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from devcluster.audit import Call
from kube.objects import Object, metadata

_GROUP = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()
    """Empty: all names."""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}" + (f" {','.join(self.names)}" if self.names else "")

    def covers(self, call: Call) -> bool:
        return (
            (self.group, self.resource, self.verb) == (call.group, call.resource, call.verb)
            and (not self.names or call.name in self.names)
        )  # fmt: skip


def rights(objects: Iterable[Object], service_account: str) -> set[Right]:
    """What Roles and ClusterRoles among these objects give to a ServiceAccount, `namespace/name`."""
    objects = list(objects)
    roles = {_role_key(each): each for each in objects if each["kind"] in {"Role", "ClusterRole"}}
    found: set[Right] = set()
    for binding in objects:
        if binding["kind"] not in {"RoleBinding", "ClusterRoleBinding"}:
            continue
        subjects = {f"{each.get('namespace', '')}/{each['name']}" for each in binding.get("subjects") or []}
        if service_account in subjects:
            reference = binding["roleRef"]
            namespace = metadata(binding).get("namespace", "") if reference["kind"] == "Role" else ""
            found |= set(_rights_of(roles[reference["kind"], namespace, reference["name"]]))
    return found


def _role_key(role: Object) -> tuple[str, str, str]:
    return role["kind"], metadata(role).get("namespace", ""), metadata(role)["name"]


def _rights_of(role: Object) -> Iterable[Right]:
    for rule in (each for each in role["rules"] if "nonResourceURLs" not in each):
        whose: list[tuple[str, ...]] = [(name,) for name in rule.get("resourceNames") or ()] or [()]
        for group, resource, verb, names in product(rule["apiGroups"], rule["resources"], rule["verbs"], whose):
            yield Right(group, resource, verb, names)


def unused(granted: Iterable[Right], calls: Iterable[Call]) -> list[Right]:
    """Those that no call made use of, without wildcards."""
    calls = list(calls)
    exact = (right for right in granted if "*" not in {right.group, right.resource, right.verb})
    return sorted(right for right in exact if not any(right.covers(call) for call in calls))
