"""The graph of a garden, kept by watches, which lag: nothing is refused before the API server was asked.

A gardenlet may learn of an object a moment before this process does. So before a refusal, what could permit the request
is read (`SOURCES`: by the label or field of the Seed, or the object itself), put into the caches, and the request is
decided again. These reads are limited for each Seed and for all; beyond the limit, the caches decide.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from gardener.api import garden
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import KINDS, TOKEN_PREFIX, USES, Graph, Node, Reference, used
from gardener.garden.seeds import bootstrap_binding, seed_of_user
from gardener.keys import SEED_LABEL_PREFIX
from kube import resources as kubernetes
from kube.errors import KubeError
from kube.objects import Key, Object, key
from kube.resources import Resource
from kube.runtime.cache import View
from kube.runtime.client import Selection
from kube.signing_requests import MalformedRequestError, parse
from webhooks.state import Lister, SharedListers

_TOKENS, _ACCOUNTS = "system:bootstrap:", "system:serviceaccount:"

BURST, SECONDS_EACH = 10, 1.0
"""Refusals of a Seed that are confirmed at once, and after how long there is one more."""
MOST_SEEDS = 1024
AT_ONCE = 4
"""Confirmations at a time, of all Seeds."""
_PATIENCE_SECONDS = 5.0

log = structlog.get_logger("webhook.seed-authorizer")


def of_signing_request(csr: Object) -> Node:
    """It belongs to the Seed that it would make a gardenlet of, and uses the credentials that it was sent with."""
    try:
        request = parse(csr)
    except MalformedRequestError:
        return Node(key(csr))
    names = request.asked.common_names
    seed = seed_of_user(names[0], request.asked.organizations) if len(names) == 1 else ""
    return Node(key(csr), (seed,) if seed else (), tuple(_credentials(request.username)) if seed else ())


def _credentials(user: str) -> Iterable[Reference]:
    if user.startswith(_TOKENS):
        token = Key("kube-system", f"{TOKEN_PREFIX}{user.removeprefix(_TOKENS)}")
        yield Reference(kubernetes.SECRETS, token)
    elif user.startswith(_ACCOUNTS):
        namespace, _, name = user.removeprefix(_ACCOUNTS).partition(":")
        account = Key(namespace, name)
        yield Reference(kubernetes.SERVICE_ACCOUNTS, account)
        yield Reference(kubernetes.CLUSTER_ROLE_BINDINGS, Key("", bootstrap_binding(account)))


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
    """Objects of a kind: the one that the request names, or those that a selector of the Seed finds."""

    resource: Resource
    label: bool = False
    field: str = ""
    namespace: str = ""
    """In place of that of the request."""

    def selection(self, seed: str) -> Selection | None:
        if self.label:
            return Selection(label_selector=f"{SEED_LABEL_PREFIX}{seed}=true")
        return Selection(field_selector=f"{self.field}={seed}") if self.field else None


_SHOOTS = Source(garden.SHOOTS, label=True)
_ENTRIES = Source(garden.BACKUP_ENTRIES, label=True)
_BUCKETS = Source(garden.BACKUP_BUCKETS, field="spec.seedName")
_SEED = Source(garden.SEEDS, field="metadata.name")
_INSTALLATIONS = Source(garden.CONTROLLER_INSTALLATIONS, field="spec.seedRef.name")

BINDINGS = (garden.SECRET_BINDINGS, garden.CREDENTIALS_BINDINGS)
SOURCES: dict[str, tuple[Source, ...]] = {
    "backupbuckets": (Source(garden.BACKUP_BUCKETS), _SEED, _ENTRIES),
    "backupentries": (Source(garden.BACKUP_ENTRIES), _SHOOTS),
    "bastions": (Source(garden.BASTIONS),),
    "certificatesigningrequests": (Source(kubernetes.CERTIFICATE_SIGNING_REQUESTS),),
    "cloudprofiles": (_SHOOTS,),
    "configmaps": (_SHOOTS, _SEED),
    "controllerdeployments": (_INSTALLATIONS,),
    "controllerinstallations": (Source(garden.CONTROLLER_INSTALLATIONS),),
    "credentialsbindings": (_SHOOTS,),
    "exposureclasses": (_SHOOTS,),
    "internalsecrets": (_SHOOTS,),
    "managedseeds": (Source(garden.MANAGED_SEEDS), _SHOOTS),
    "namespacedcloudprofiles": (_SHOOTS,),
    "namespaces": (_SHOOTS, _ENTRIES),
    "projects": (_SHOOTS, _ENTRIES, Source(garden.PROJECTS)),
    "secretbindings": (_SHOOTS,),
    "secrets": (_SHOOTS, _SEED, _BUCKETS, _ENTRIES),
    "seeds": (Source(garden.MANAGED_SEEDS, namespace=NAMESPACE), _SHOOTS),
    "shoots": (Source(garden.SHOOTS),),
    "shootstates": (_SHOOTS,),
    "workloadidentities": (_SHOOTS, _SEED, _BUCKETS),
}


# --- the graph in memory


class LiveGraph:
    """Args: clock: seconds."""

    def __init__(self, state: SharedListers, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._listers: dict[Resource, Lister[Node]] = {each: state.lister(view) for each, view in VIEWS.items()}
        self._graph: Graph | None = None
        self._budget = Budget(clock)
        self._at_once = asyncio.Semaphore(AT_ONCE)

    def read(self) -> Graph | None:
        """None: not everything is known yet."""
        if self._graph is None:
            if not all(each.started and each.store.synced.is_set() for each in self._listers.values()):
                return None
            self._graph = Graph({resource: each.store for resource, each in self._listers.items()})
        return self._graph

    async def confirmed(self, seed: str, resource: str, named: Key, is_refused: Callable[[], bool]) -> bool:
        """Whether a request is refused also when what could permit it has been read from the API server."""
        sources = SOURCES.get(resource, ())
        graph = self.read()
        if graph is None or not sources or not self._budget.take(seed):
            return True
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS), self._at_once:
                missing: list[Reference] = []
                for source in sources:
                    missing += await self._refresh(source, seed, named)
                    if not is_refused():
                        return False
                for binding in dict.fromkeys(missing):
                    await self._refresh(Source(binding.resource), seed, binding.key)
        except (KubeError, TimeoutError) as error:
            log.warning("Cannot confirm a refusal; the caches decide", seed=seed, error=str(error))
        return is_refused()

    async def _refresh(self, source: Source, seed: str, named: Key) -> list[Reference]:
        """Returns the bindings that are used and not known."""
        client, view, store = self._state.target.client, VIEWS[source.resource], self._listers[source.resource].store
        selection, nodes = source.selection(seed), []
        if selection is not None:
            async for page in client.pages(source.resource, selection):
                nodes += [view.project(obj) for obj in page]
                for obj in page:
                    store.observe(obj)
        elif named.name and (
            found := await client.find(source.resource, named.name, namespace=source.namespace or named.namespace)
        ):
            store.observe(found)
        return [each for node in nodes for each in node.uses if self._is_unknown_binding(each)]

    def _is_unknown_binding(self, used: Reference) -> bool:
        return used.resource in BINDINGS and self._listers[used.resource].store.get(used.key) is None


class Budget:
    """How many refusals of a Seed are confirmed: a few at once, then one a second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()
        """By Seed when it has its whole budget again."""

    def take(self, seed: str) -> bool:
        now = self._clock()
        full_at = max(self._full_at.pop(seed, now), now)
        is_left = full_at - now <= (BURST - 1) * SECONDS_EACH
        self._full_at[seed] = full_at + SECONDS_EACH if is_left else full_at
        if len(self._full_at) > MOST_SEEDS:
            self._full_at.popitem(last=False)
        return is_left
