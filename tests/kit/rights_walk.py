"""Every verb of every kind: what walks over rights have in common."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from gardener.api import garden
from gardener.rights.requests import Attributes
from kit.garden import Garden
from kube import resources as kubernetes
from kube.objects import Object, mappings, texts
from kube.paths import mapping_at
from kube.resources import SELF_SUBJECT_RULES_REVIEWS, Resource

VERBS = (
    *("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
    *("bind", "escalate", "impersonate", "approve", "sign", "attest", "use", "proxy", "manage-members", "*", ""),
)
_OF_MANY = {"list", "watch", "create", "deletecollection", "*"}
SUBRESOURCES = (
    *("", "status", "finalizers", "scale", "binding", "token", "approval", "seedclient", "adminkubeconfig"),
    *("viewerkubeconfig", "eviction", "exec", "proxy", "finalize", "*"),
)
KINDS = sorted(
    {each for module in (garden, kubernetes) for each in vars(module).values() if isinstance(each, Resource)}
    | {
        Resource("example.com", "v1", "Thing", "things", namespaced=True),
        Resource("*", "*", "*", "*", namespaced=True),
    },
    key=lambda each: (each.group, each.plural, each.version),
)


def requests(places: Iterable[tuple[str, str]], subresources: Iterable[str] = SUBRESOURCES) -> Iterator[Attributes]:
    """Each verb of each kind, for each namespace and name; without a name, those that need none."""
    for (namespace, name), kind, subresource, verb in product(places, KINDS, subresources, VERBS):
        is_sent = bool(name) or (verb in _OF_MANY and not subresource)
        if is_sent and (kind.namespaced or not namespace):
            yield Attributes(
                user="",
                verb=verb,
                group=kind.group,
                resource=kind.plural,
                subresource=subresource,
                namespace=namespace,
                name=name,
            )


@dataclass(frozen=True, slots=True)
class Granted:
    """Rights of a user in a namespace by RBAC, as the API server evaluates them."""

    rights: dict[tuple[str, str, str], list[frozenset[str]]]
    """By group, resource and verb: names of objects, empty for all."""

    def permits(self, requested: Attributes) -> bool:
        resource = f"{requested.resource}/{requested.subresource}" if requested.subresource else requested.resource
        resources = (resource, "*", *([f"*/{requested.subresource}"] if requested.subresource else []))
        found = product({requested.group, "*"}, resources, {requested.verb, "*"})
        return any(not names or requested.name in names for each in found for names in self.rights.get(each, ()))


def granted(garden: Garden, namespace: str, user: str, group: str = "system:authenticated") -> Granted:
    """Evaluated by the API server of a garden, from the roles and bindings that it has."""
    body = {**SELF_SUBJECT_RULES_REVIEWS.type_meta, "spec": {"namespace": namespace}}
    headers = {"Impersonate-User": user, "Impersonate-Group": group}
    answer: Object = garden.cluster.api.request("POST", SELF_SUBJECT_RULES_REVIEWS.path(), body, headers=headers)
    rights: dict[tuple[str, str, str], list[frozenset[str]]] = {}
    for rule in mappings(mapping_at(answer, "status").get("resourceRules")):
        names = frozenset(texts(rule.get("resourceNames")))
        for each in product(texts(rule.get("apiGroups")), texts(rule.get("resources")), texts(rule.get("verbs"))):
            rights.setdefault(each, []).append(names)
    return Granted(rights)
