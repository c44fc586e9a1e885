"""Graph of a garden, kept current by watches, which lag: refusals are first confirmed at the API server.

A gardenlet may know an object a moment before this process does. Before a refusal, all objects that could permit the
request are therefore read (`SOURCES`: by the label or field of the Seed, or the object itself) and put into the caches,
and the request is decided again. These reads are limited for each Seed and for all; beyond the limit, the caches
decide.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

import structlog

from gardener.api import garden
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import KINDS, TOKEN_PREFIX, USES, Graph, Node, Reference, used
from gardener.garden.seeds import seed_of_user
from gardener.keys import SEED_LABEL_PREFIX, USABLE_BY_SEED_PREFIX
from kube import resources as kubernetes
from kube.errors import KubeError
from kube.objects import Key, Object, key, labels
from kube.resources import Resource
from kube.runtime.cache import View
from kube.runtime.client import Form, Selection, by_name
from kube.signing_requests import KUBE_APISERVER_CLIENT, MalformedRequestError, is_approved, parse, signer_of
from webhooks.state import Lister, SharedListers

_TOKENS = "system:bootstrap:"

BURST, SECONDS_EACH = 10, 1.0
"""Refusals of a Seed that are confirmed at once, and seconds until one more is."""
MOST_REFERENCES = 64
"""References whose labels are read for one request."""
MOST_SEEDS = 1024
AT_ONCE = 4
"""Concurrent confirmations, over all Seeds."""
_PATIENCE_SECONDS = 5.0

log = structlog.get_logger("webhook.seed-authorizer")


def of_signing_request(csr: Object) -> Node:
    """Node of a request: belongs to the Seed of the requested user, and uses the bootstrap token that sent it.

    The token counts only after approval: before, its user could have named any Seed. ServiceAccounts belong to Seeds by
    their names alone: their tokens have all their rights.
    """
    try:
        request = parse(csr)
    except MalformedRequestError:
        return Node(key(csr))
    names = request.requested.common_names
    seed = seed_of_user(names[0], request.requested.organizations) if len(names) == 1 else None
    if not seed or signer_of(csr) != KUBE_APISERVER_CLIENT:
        return Node(key(csr))
    is_token = is_approved(csr) and request.username.startswith(_TOKENS)
    token = Key("kube-system", f"{TOKEN_PREFIX}{request.username.removeprefix(_TOKENS)}")
    return Node(key(csr), (seed,), (Reference(kubernetes.SECRETS, token),) if is_token else ())


VIEWS: dict[Resource, View[Node]] = {
    **{
        resource: View(resource, kind.node, indexes=tuple(kind.indexes.items()), packs=False)
        for resource, kind in KINDS.items()
    },
    kubernetes.CERTIFICATE_SIGNING_REQUESTS: View(
        kubernetes.CERTIFICATE_SIGNING_REQUESTS, of_signing_request, indexes=((USES, used),), packs=False
    ),
}


# --- what could permit a request


@dataclass(frozen=True, slots=True)
class Source:
    """Objects of a kind: the one named in the request, those matching a selector of the Seed, or all."""

    resource: Resource
    label: bool = False
    field: str = ""
    namespace: str = ""
    """Replaces the namespace of the request unless empty."""
    has_all: bool = False

    def selection(self, seed: str, named: Key) -> Selection | None:
        """Objects to read; None if the request names none."""
        if self.has_all:
            return Selection(self.namespace)
        if self.label:
            return Selection(label_selector=f"{SEED_LABEL_PREFIX}{seed}=true")
        if self.field:
            return Selection(field_selector=f"{self.field}={seed}")
        if not named.name:
            return None
        return Selection(self.namespace or named.namespace, field_selector=by_name(named.name))


_SHOOTS = Source(garden.SHOOTS, label=True)
_ENTRIES = Source(garden.BACKUP_ENTRIES, label=True)
_BUCKETS = Source(garden.BACKUP_BUCKETS, field="spec.seedName")
_SEED = Source(garden.SEEDS, field="metadata.name")
_INSTALLATIONS = Source(garden.CONTROLLER_INSTALLATIONS, field="spec.seedRef.name")
_CHILDREN = Source(garden.MANAGED_SEEDS, namespace=NAMESPACE, has_all=True)
_NAMED_SEEDS = tuple(
    Source(each, namespace=NAMESPACE) for each in (garden.MANAGED_SEEDS, garden.GARDENLETS, garden.SEEDS)
)
"""Objects named after a Seed in which others enter credentials and labels for it."""

BINDINGS = (garden.SECRET_BINDINGS, garden.CREDENTIALS_BINDINGS)
SOURCES: dict[str, tuple[Source, ...]] = {
    "backupbuckets": (Source(garden.BACKUP_BUCKETS), _SEED, _ENTRIES),
    "backupentries": (Source(garden.BACKUP_ENTRIES), _SHOOTS),
    "bastions": (Source(garden.BASTIONS), _SHOOTS),
    "certificatesigningrequests": (Source(kubernetes.CERTIFICATE_SIGNING_REQUESTS),),
    "cloudprofiles": (_SHOOTS,),
    "clusterrolebindings": (_CHILDREN, _SHOOTS),
    "configmaps": (_SHOOTS, _SEED),
    "controllerdeployments": (_INSTALLATIONS,),
    "controllerinstallations": (Source(garden.CONTROLLER_INSTALLATIONS),),
    "credentialsbindings": (_SHOOTS,),
    "exposureclasses": (_SHOOTS,),
    "gardenlets": _NAMED_SEEDS,
    "internalsecrets": (_SHOOTS,),
    "managedseeds": (*_NAMED_SEEDS, _SHOOTS),
    "namespacedcloudprofiles": (_SHOOTS,),
    "namespaces": (_SHOOTS, _ENTRIES),
    "projects": (_SHOOTS, _ENTRIES, Source(garden.PROJECTS)),
    "secretbindings": (_SHOOTS,),
    "secrets": (_SHOOTS, _SEED, _BUCKETS, _ENTRIES, _CHILDREN),
    "serviceaccounts": (_INSTALLATIONS, _CHILDREN, _SHOOTS),
    "seeds": (*_NAMED_SEEDS, _SHOOTS),
    "shoots": (Source(garden.SHOOTS),),
    "shootstates": (_SHOOTS,),
    "workloadidentities": (_SHOOTS, _SEED, _BUCKETS),
}


# --- the graph in memory


class LiveGraph:
    """Graph in memory; `clock` returns the time in seconds."""

    def __init__(self, state: SharedListers, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._listers: dict[Resource, Lister[Node]] = {each: state.lister(view) for each, view in VIEWS.items()}
        self._graph: Graph | None = None
        self._budget = Budget(clock)
        self._at_once = asyncio.Semaphore(AT_ONCE)

    def read(self) -> Graph | None:
        """Return the graph; None until all caches are synced."""
        if self._graph is None:
            if not all(each.started and each.store.synced.is_set() for each in self._listers.values()):
                return None
            self._graph = Graph({resource: each.store for resource, each in self._listers.items()})
        return self._graph

    async def usable(self, seed: str, references: Iterable[Reference]) -> list[Reference]:
        """References whose objects have the label that lets the Seed use them, as far as the budget reaches."""
        found, wanted, client = [], f"{USABLE_BY_SEED_PREFIX}{seed}", self._state.target.client
        for each in islice(references, MOST_REFERENCES) if self._budget.take(seed) else ():
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS), self._at_once:
                    live = await client.get(each.resource, each.key, form=Form.METADATA)
            except (KubeError, TimeoutError) as error:
                log.warning(
                    "Cannot determine whether a Seed may use an object", seed=seed, object=each.key, error=str(error)
                )
                continue
            if labels(live).get(wanted) == "true":
                found.append(each)
        return found

    async def confirmed(
        self, seed: str, resource: str, named: Key, is_refused: Callable[[], bool], *, also: Iterable[Reference] = ()
    ) -> bool:
        """Whether a request is still refused after reading all objects that could permit it from the API server.

        `also` are objects in addition to those of `SOURCES`.
        """
        sources = SOURCES.get(resource, ())
        graph = self.read()
        if graph is None or not sources or not self._budget.take(seed):
            return True
        if graph.seed(seed) is None:
            sources = (_SEED, *sources)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS), self._at_once:
                missing: list[Reference] = []
                for source in sources:
                    missing += await self._refresh(source, seed, named)
                    if not is_refused():
                        return False
                for each in dict.fromkeys((*also, *missing)):
                    await self._refresh(Source(each.resource), seed, each.key)
        except (KubeError, TimeoutError) as error:
            log.warning(
                "Cannot verify a denial with the API server; relying on the caches", seed=seed, error=str(error)
            )
        return is_refused()

    async def _refresh(self, source: Source, seed: str, named: Key) -> list[Reference]:
        """Update a cache from the API server; return bindings that are used but not cached."""
        view, store, nodes = VIEWS[source.resource], self._listers[source.resource].store, list[Node]()
        if (selection := source.selection(seed, named)) is None:
            return []
        async for page in self._state.target.client.pages(source.resource, selection):
            nodes += [view.project(obj) for obj in page]
            for obj in page:
                store.observe(obj)
        return [each for node in nodes for each in node.uses if self._is_unknown_binding(each)]

    def _is_unknown_binding(self, used: Reference) -> bool:
        return used.resource in BINDINGS and self._listers[used.resource].store.get(used.key) is None


class Budget:
    """Limit of confirmed refusals of a Seed: a few at once, then one per second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()
        """Time when the whole budget is available again, by Seed."""

    def take(self, seed: str) -> bool:
        now = self._clock()
        full_at = max(self._full_at.pop(seed, now), now)
        is_left = full_at - now <= (BURST - 1) * SECONDS_EACH
        self._full_at[seed] = full_at + SECONDS_EACH if is_left else full_at
        if len(self._full_at) > MOST_SEEDS:
            self._full_at.popitem(last=False)
        return is_left
