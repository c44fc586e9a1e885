"""Other objects of the garden for rules: kept in memory by watches, found by name or by an index.

`VIEWS` defines the projection and the indexes of each kind; the `reads` of a descriptor list the kinds that its rules
read. Views that several kinds read are watched once.
"""

import asyncio
from collections.abc import Hashable, Iterable, Sequence

from gardener import keys
from gardener.api import garden
from gardener.garden import users
from gardener.garden.domains import DOMAIN_ANNOTATIONS, domains, parent_domains
from gardener.garden.managed_seeds import disabled_routing
from gardener.garden.members import extension_roles_of
from gardener.garden.shoots import seeds_of
from gardener.tenant_files.references import only_references, tenant_files
from kube import resources as kubernetes
from kube.objects import Key, Object, annotations, labels, mapping, mappings, metadata, spec
from kube.resources import Resource
from kube.runtime.cache import Store, View, without_managed_fields
from kube.runtime.client import Form
from webhooks.garden.common.domains import domain_roles
from webhooks.garden.common.extensions import provided, provided_for_all
from webhooks.garden.common.write import GardenLister, Index
from webhooks.state import Lister, SharedListers


def bare(obj: Object) -> Object:
    """Projection of objects that are only found by name: names, and the annotations of Secrets with domains.

    Others are numerous, and may have any labels and annotations of any length.
    """
    kept = _only(metadata(obj), ("name", "namespace", "deletionTimestamp"))
    if role := labels(obj).get(keys.ROLE):
        kept |= {"labels": {keys.ROLE: role}, "annotations": _only(annotations(obj), DOMAIN_ANNOTATIONS)}
    return {"metadata": kept}


def carrier(role: Object) -> Object:
    """Projection of a ClusterRole: the extension role that it adds to."""
    return {"metadata": {"labels": _only(labels(role), (keys.AGGREGATE_TO_EXTENSION_ROLE,))}}


def own_profile(profile: Object) -> Object:
    """Projection of a NamespacedCloudProfile without parts of its parent, which readers merge into it."""
    return without_managed_fields({field: value for field, value in profile.items() if field != "status"})


_OF_SHOOTS = (
    *("addons", "cloudProfile", "cloudProfileName", "credentialsBindingName", "dns", "networking", "region"),
    *("secretBindingName", "seedName"),
)
_OF_POOLS = ("kubernetes", "machine", "maximum", "name", "volume", "zones")


def lean_shoot(shoot: Object) -> Object:
    """Projection of a Shoot to fields that other objects' rules read: there are many, mostly with unrelated
    settings.
    """
    whole, meta = spec(shoot), metadata(shoot)
    provider, kubernetes = mapping(whole.get("provider")), mapping(whole.get("kubernetes"))
    server = only_references(mapping(kubernetes.get("kubeAPIServer")))
    pools = [_only(worker, _OF_POOLS) for worker in mappings(provider.get("workers"))]
    status = mapping(shoot.get("status"))
    last = _only(mapping(status.get("lastOperation")), ("state", "type"))
    noted = _only(annotations(shoot), (keys.PROTECT_FROM_DELETION,))
    return {
        "metadata": {
            **_only(meta, ("deletionTimestamp", "name", "namespace", "uid")),
            **({"annotations": noted} if noted else {}),
        },
        "spec": {
            **_only(whole, _OF_SHOOTS),
            "kubernetes": {
                **_only(kubernetes, ("version", "verticalPodAutoscaler")),
                **disabled_routing(whole),
                **({"kubeAPIServer": server} if server else {}),
            },
            "provider": {**_only(provider, ("type", "workersSettings")), "workers": pools},
        },
        "status": {**_only(status, ("seedName",)), **({"lastOperation": last} if last else {})},
    }


def lean_set(seed_set: Object) -> Object:
    """Projection of a ManagedSeedSet without its templates."""
    return {
        "metadata": _only(metadata(seed_set), ("deletionTimestamp", "name", "namespace", "uid")),
        "spec": _only(spec(seed_set), ("replicas",)),
        "status": _only(mapping(seed_set.get("status")), ("replicas",)),
    }


def _only(obj: Object, fields: Iterable[str]) -> Object:
    return {field: obj[field] for field in fields if field in obj}


def _indexed(indexes: Iterable[Index]) -> tuple[tuple[str, Index], ...]:
    return tuple((index.__name__, index) for index in indexes)


def _view(resource: Resource, *indexes: Index) -> View[Object]:
    return View(resource, without_managed_fields, indexes=_indexed(indexes))


def _bare(resource: Resource, *indexes: Index) -> View[Object]:
    return View(resource, bare, form=Form.METADATA, indexes=_indexed(indexes))


VIEWS: dict[Resource, View[Object]] = {
    view.resource: view
    for view in (
        _view(garden.BACKUP_BUCKETS),
        _view(garden.BACKUP_ENTRIES, users.backup_buckets),
        View(garden.CLOUD_PROFILES, without_managed_fields, packs=False),
        _bare(garden.CONTROLLER_DEPLOYMENTS),
        _view(garden.CONTROLLER_REGISTRATIONS, provided, provided_for_all),
        _view(garden.CREDENTIALS_BINDINGS, users.quotas),
        _view(garden.EXPOSURE_CLASSES),
        _bare(garden.GARDENLETS),
        _view(garden.MANAGED_SEEDS, users.shoots),
        View(garden.MANAGED_SEED_SETS, lean_set),
        View(garden.NAMESPACED_CLOUD_PROFILES, own_profile, indexes=_indexed((users.parents,))),
        _view(garden.PROJECTS, users.namespaces),
        _view(garden.QUOTAS),
        _view(garden.SECRET_BINDINGS, users.quotas),
        _view(garden.SEEDS),
        _view(garden.SEED_AUTOSCALERS, users.managed_seed_sets),
        View(
            garden.SHOOTS,
            lean_shoot,
            indexes=_indexed(
                (
                    seeds_of,
                    users.cloud_profiles,
                    users.namespaced_cloud_profiles,
                    users.secret_bindings,
                    users.credentials_bindings,
                    domains,
                    parent_domains,
                    tenant_files,
                )
            ),
        ),
        _bare(garden.WORKLOAD_IDENTITIES),
        _view(garden.OPEN_ID_CONNECT_PRESETS),
        _view(garden.CLUSTER_OPEN_ID_CONNECT_PRESETS),
        View(kubernetes.CLUSTER_ROLES, carrier, form=Form.METADATA, indexes=_indexed((extension_roles_of,))),
        _bare(kubernetes.NAMESPACES),
        _bare(kubernetes.CONFIG_MAPS),
        _bare(kubernetes.SECRETS, domain_roles),
    )
}
"""Only metadata of Secrets is ever read: domains are in annotations."""

Missed = tuple[Resource, Key]


class Lookups:
    def __init__(self, state: SharedListers, resources: Sequence[Resource]) -> None:
        self._listers: dict[Resource, Lister[Object]] = {each: state.lister(VIEWS[each]) for each in resources}
        self._synced: list[asyncio.Event] | None = None
        """Events of all stores, once they exist."""

    @property
    def ready(self) -> bool:
        if self._synced is None:
            if not all(lister.started for lister in self._listers.values()):
                return False
            self._synced = [lister.store.synced for lister in self._listers.values()]
        return all(map(asyncio.Event.is_set, self._synced))

    def of_request(self) -> "Seen":
        return Seen(self._listers)

    def store(self, resource: Resource) -> Store[Object]:
        return self._listers[resource].store


class Seen(GardenLister):
    """View of the garden for one request."""

    def __init__(self, listers: dict[Resource, Lister[Object]]) -> None:
        self._listers = listers
        self.missed: set[Missed] = set()

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self._listers[resource].store.get(Key(namespace if resource.namespaced else "", name))

    def need(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        found = self.get(resource, name, namespace)
        if found is None and name:
            self.missed.add((resource, Key(namespace if resource.namespaced else "", name)))
        return found

    def list(self, resource: Resource, namespace: str = "") -> Iterable[Object]:
        store = self._listers[resource].store
        if not namespace:
            return store.values()
        # Copies all keys at once: the watch may continue while a review reads in another thread.
        named = [key for key in tuple(store.all_keys()) if key.namespace == namespace]
        return [obj for obj in map(store.get, named) if obj is not None]

    def by(self, resource: Resource, index: Index, value: Hashable) -> Sequence[Object]:
        while True:
            try:
                return self._listers[resource].store.values_by_index(index.__name__, value)
            except KeyError:  # the watch has continued
                continue
