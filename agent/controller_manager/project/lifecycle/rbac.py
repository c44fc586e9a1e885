"""Desired roles and bindings for a Project's owner and members.

Rights in the namespace come from ClusterRoles that the garden has, by RoleBindings to them. Rights to the Project
itself and to see its namespace come from ClusterRoles that are made for each Project. An extension may bring a role of
its own, `extension:NAME`: Kubernetes aggregates that ClusterRole from those with a label, so its rules are managed by
Kubernetes alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from agent.controller_manager.project.lifecycle.namespace import owner_reference
from gardener import keys
from gardener.api.garden import PROJECTS
from gardener.garden.members import (
    ADMIN,
    EXTENSION_PREFIX,
    OWNER,
    SERVICE_ACCOUNT_MANAGER,
    USER_ACCESS_MANAGER,
    VIEWER,
    extension_roles,
    members,
    roles,
)
from kube.objects import Key, Object, controller_of, group_of, key, labels, mapping, mappings, metadata, spec, text, uid
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, RBAC_GROUP, ROLE_BINDINGS, Resource

_SYSTEM = "gardener.cloud:system"


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredRight:
    """Desired role or binding."""

    resource: Resource
    key: Key
    content: Object
    """Top-level fields except metadata."""
    owner: Object
    labels: dict[str, str] = field(default_factory=dict)

    def body(self) -> Object:
        place = {"namespace": self.key.namespace} if self.key.namespace else {}
        marks = {"labels": self.labels} if self.labels else {}
        meta = {"name": self.key.name, **place, **marks, "ownerReferences": [self.owner]}
        return {**self.resource.type_meta, "metadata": meta, **self.content}

    def change_of(self, present: "PresentRight") -> Object:
        """Merge patch without resourceVersion; empty if nothing changes."""
        meta: Object = {}
        if present.labels != self.labels:
            meta["labels"] = {**dict.fromkeys(present.labels.keys() - self.labels.keys()), **self.labels}
        if present.owners != [self.owner]:
            meta["ownerReferences"] = [self.owner]
        change: Object = {"metadata": meta} if meta else {}
        if present.content != self.content:
            change |= {**dict.fromkeys(present.content.keys() - self.content.keys()), **self.content}
        return change

    def is_rebound(self, present: "PresentRight") -> bool:
        """Whether the present binding refers to another role, which cannot be changed."""
        return present.content.get("roleRef") != self.content.get("roleRef")


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentRight:
    """Cached fields of an existing role or binding."""

    uid: str
    version: str = field(compare=False)
    labels: dict[str, str]
    owners: list[Object]
    content: Object

    @classmethod
    def of(cls, obj: Object) -> "PresentRight":
        """Cache a role or binding, without rules that Kubernetes aggregates."""
        if "roleRef" in obj:
            content: Object = {"roleRef": mapping(obj["roleRef"]), "subjects": mappings(obj.get("subjects"))}
        elif obj.get("aggregationRule"):
            content = {"aggregationRule": obj["aggregationRule"]}
        else:
            content = {"rules": mappings(obj.get("rules"))}
        meta = metadata(obj)
        return cls(
            uid=uid(obj),
            version=text(meta.get("resourceVersion")),
            labels=dict(labels(obj)),
            owners=mappings(meta.get("ownerReferences")),
            content=content,
        )

    @classmethod
    def of_project(cls, obj: Object) -> "PresentRight | None":
        """Cache a role or binding; None if no Project controls it."""
        return cls.of(obj) if controlling_project(obj) else None

    @property
    def project(self) -> str:
        return controlling_project({"metadata": {"ownerReferences": self.owners}})

    def is_extension_of(self, project: Object) -> bool:
        """Whether the object was made for an extension role of the Project."""
        is_owned = any(each.get("uid") == uid(project) for each in self.owners)
        return is_owned and _extension_labels(project).items() <= self.labels.items()


def controlling_project(obj: Object) -> str:
    """Name of the Project that controls an object; empty if none does."""
    owner = controller_of(obj) or {}
    is_project = owner.get("kind") == PROJECTS.kind and group_of(text(owner.get("apiVersion"))) == PROJECTS.group
    return text(owner.get("name")) if is_project else ""


# --- desired rights


def wanted_roles(project: Object, namespace: str) -> Iterator[DesiredRight]:
    """ClusterRoles; `wanted_bindings` refer to them."""
    name, owner = key(project).name, owner_reference(project, blocks=False)
    see = _rule(NAMESPACES, namespace, "get")
    for suffix, rules in (
        ("project", [see, _rule(PROJECTS, name, "get patch manage-members update delete")]),
        ("project-uam", [_rule(PROJECTS, name, "get manage-members patch update")]),
        ("project-member", [see, _rule(PROJECTS, name, "get patch update delete")]),
        ("project-viewer", [see, _rule(PROJECTS, name, "get")]),
    ):
        own = Key("", f"{_SYSTEM}:{suffix}:{name}")
        yield DesiredRight(resource=CLUSTER_ROLES, key=own, content={"rules": rules}, owner=owner)
    for role in extension_roles(spec(project)):
        selector = {"matchLabels": {keys.AGGREGATE_TO_EXTENSION_ROLE: role}}
        yield DesiredRight(
            resource=CLUSTER_ROLES,
            key=Key("", extension_role_name(project, role)),
            content={"aggregationRule": {"clusterRoleSelectors": [selector]}},
            labels=_extension_labels(project),
            owner=owner,
        )


def wanted_bindings(project: Object, namespace: str) -> Iterator[DesiredRight]:
    name, owner = key(project).name, owner_reference(project, blocks=False)
    owners = [_subject(each)] if (each := mapping(spec(project).get("owner"))) else []
    admins, viewers = _holders(project, ADMIN, OWNER), _holders(project, VIEWER)
    for suffix, subjects in (
        ("project", owners),
        ("project-uam", _holders(project, USER_ACCESS_MANAGER)),
        ("project-member", admins),
        ("project-viewer", viewers),
    ):
        yield _binding(CLUSTER_ROLE_BINDINGS, Key("", f"{_SYSTEM}:{suffix}:{name}"), subjects, owner)
    for suffix, subjects in (
        ("project-member", admins),
        ("project-viewer", viewers),
        ("project-serviceaccountmanager", [*owners, *_holders(project, SERVICE_ACCOUNT_MANAGER, OWNER)]),
    ):
        yield _binding(ROLE_BINDINGS, Key(namespace, f"{_SYSTEM}:{suffix}"), subjects, owner)
    for role in extension_roles(spec(project)):
        own, subjects = Key(namespace, extension_role_name(project, role)), _holders(project, EXTENSION_PREFIX + role)
        yield _binding(ROLE_BINDINGS, own, subjects, owner, **_extension_labels(project))


def extension_role_name(project: Object, role: str) -> str:
    return f"gardener.cloud:extension:project:{key(project).name}:{role}"


def _holders(project: Object, *wanted: str) -> list[Object]:
    """Members with one of these roles."""
    return [_subject(member) for member in members(spec(project)) if not set(wanted).isdisjoint(roles(member))]


def _subject(member: Object) -> Object:
    """Subject of a binding, as the API server stores it."""
    kind, name = text(member.get("kind")), text(member.get("name"))
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": text(member.get("namespace"))}
    return {"apiGroup": text(member.get("apiGroup")) or RBAC_GROUP, "kind": kind, "name": name}


def _rule(resource: Resource, name: str, verbs: str) -> Object:
    return {
        "apiGroups": [resource.group],
        "resources": [resource.plural],
        "resourceNames": [name],
        "verbs": verbs.split(),
    }


def _binding(resource: Resource, own: Key, subjects: list[Object], owner: Object, **marks: str) -> DesiredRight:
    """Binding to the ClusterRole of the same name, without duplicate subjects."""
    unique: dict[object, Object] = {}
    for each in subjects:
        unique.setdefault(tuple(sorted(each.items())), each)
    content: Object = {
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": CLUSTER_ROLES.kind, "name": own.name},
        "subjects": list(unique.values()),
    }
    return DesiredRight(resource=resource, key=own, content=content, labels=marks, owner=owner)


def _extension_labels(project: Object) -> dict[str, str]:
    return {keys.ROLE: keys.ROLE_EXTENSION_PROJECT_ROLE, keys.PROJECT_NAME: key(project).name}
