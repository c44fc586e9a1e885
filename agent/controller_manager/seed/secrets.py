"""The controller `seed-secrets`: a Seed has a namespace in the garden, with copies of the garden's Secrets in it.

Seeds        that come
Secrets      of the garden: all Seeds; copies: their Seed
Namespaces   of Seeds, if they go or have been changed
"""

from collections.abc import Awaitable, Iterable, Mapping
from functools import partial

import structlog

from agent.controller_manager.common.api import BY_NAMESPACE, GARDEN_SECRETS_VIEW, NAMESPACES_VIEW, SEEDS_VIEW
from agent.controller_manager.common.rules.garden_secrets import GardenSecret, copied
from agent.controller_manager.context import Context
from gardener import keys
from gardener.api.garden import SEEDS
from gardener.garden.domains import NAMESPACE
from gardener.garden.seeds import namespace_of, seed_of
from kube.errors import KubeError
from kube.objects import Key, Object, controller_of, is_deleting, key, labels, metadata, uid
from kube.resources import NAMESPACES, SECRETS
from kube.runtime.cache import Change, Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, Result
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped, enqueue_users
from kube.runtime.predicates import Predicate, any_of, came, changed, listed

_WORKERS = 5

_is_other_namespace: Predicate[Object] = changed(
    "metadata.labels", "metadata.ownerReferences", "metadata.deletionTimestamp"
)
ROLE_SEED = "seed"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def declare(context: Context) -> ControlLoop:
    caches = context.garden.caches
    loop = ControlLoop("seed-secrets", kind=SEEDS, workers=_WORKERS)
    seeds = loop.watch(caches, SEEDS_VIEW, enqueue(when=any_of(came, listed)))
    secrets = loop.watch(caches, GARDEN_SECRETS_VIEW, enqueue_users(partial(_of_secret, seeds)))
    namespaces = loop.watch(caches, NAMESPACES_VIEW, enqueue_mapped(_of_namespace, when=_is_other_namespace))
    return loop.reconciled_by(
        Reconciler(client=context.garden.client, seeds=seeds, secrets=secrets, namespaces=namespaces)
    )


def _of_secret(seeds: Store[Object], secret: Key) -> list[Key]:
    if name := seed_of(secret.namespace):
        return [Key("", name)]
    return list(seeds.all_keys())


def _of_namespace(change: Change[Object]) -> list[Key]:
    name = seed_of(change.key.name)
    return [Key("", name)] if name else []


class Reconciler:
    def __init__(
        self,
        *,
        client: Client,
        seeds: Store[Object],
        secrets: Store[GardenSecret | None],
        namespaces: Store[Object],
    ) -> None:
        self._client = client
        self._seeds = seeds
        self._secrets = secrets
        self._namespaces = namespaces

    async def reconcile(self, key: Key) -> Result:
        seed = self._seeds.get(key)
        if seed is None:
            return Done()
        if not await self._prepare_namespace(seed):
            log.info("The namespace of the Seed is being deleted; it is recreated afterwards")
            return Done()
        namespace = namespace_of(key.name)
        sources, copies = self._by_name(NAMESPACE), self._by_name(namespace)
        outdated = [
            source for name, source in sources.items() if name not in copies or copies[name].digest != source.digest
        ]
        unwanted = [copy for name, copy in copies.items() if name not in sources]
        errors = await _failures(
            "failed to sync garden secrets", (self._write(source, namespace) for source in outdated)
        )
        errors += await _failures(
            "failed to clean up secrets in seed namespace", (self._delete(copy) for copy in unwanted)
        )
        if errors:
            raise ExceptionGroup("one or more Secrets could not be synchronized", errors)
        return Done()

    def _by_name(self, namespace: str) -> Mapping[str, GardenSecret]:
        return {found.name: secret for found, secret in self._secrets.by_index(BY_NAMESPACE, namespace) if secret}

    # --- the namespace

    async def _prepare_namespace(self, seed: Object) -> bool:
        """Create or label the namespace, and return whether it can be written to.

        Raises:
            ReconcileError: another owner controls it.
        """
        name = namespace_of(key(seed).name)
        present = self._namespaces.get(Key("", name))
        if present is None:
            if created := await self._client.create_if_missing(NAMESPACES, _namespace(name, seed)):
                self._namespaces.observe(created)
                return True
            present = await self._client.get(NAMESPACES, name)
        controller = controller_of(present)
        if controller is None or controller.get("uid") != uid(seed):
            raise ReconcileError(f'namespace "{name}" is not controlled by seed "{key(seed).name}"')
        if is_deleting(present):
            return False
        if labels(present).get(keys.ROLE) != ROLE_SEED:
            body = {
                "metadata": {
                    "resourceVersion": metadata(present)["resourceVersion"],
                    "labels": {keys.ROLE: ROLE_SEED},
                }
            }
            self._namespaces.observe(await self._client.patch(NAMESPACES, name, body))
        return True

    # --- copies

    async def _write(self, source: GardenSecret, namespace: str) -> None:
        wanted = copy_of(source, namespace)
        if created := await self._client.create_if_missing(SECRETS, wanted):
            self._secrets.observe(created)
            return
        present = await self._client.get(SECRETS, Key(namespace, source.name))
        if has_to_be_made_anew(present, wanted):
            await self._client.delete(
                SECRETS,
                Key(namespace, source.name),
                uid=uid(present),
                resource_version=metadata(present)["resourceVersion"],
            )
            self._secrets.observe(await self._client.create(SECRETS, wanted))
        else:
            self._secrets.observe(await self._client.replace(SECRETS, updated(present, wanted)))

    async def _delete(self, copy: GardenSecret) -> None:
        await self._client.delete_if_exists(SECRETS, Key(copy.namespace, copy.name), uid=copy.uid)


async def _failures(what: str, attempts: Iterable[Awaitable[None]]) -> list[ReconcileError]:
    """Await all, and return the errors: a failed write does not stop the others."""
    problems = list[KubeError]()
    for attempt in attempts:
        try:
            await attempt
        except KubeError as error:
            problems.append(error)
    if not problems:
        return []
    failure = ReconcileError(f"{what}: {'; '.join(map(str, problems))}")
    failure.__cause__ = ExceptionGroup(what, problems)
    return [failure]


def _namespace(name: str, seed: Object) -> Object:
    owner = SEEDS.reference(name=key(seed).name, uid=uid(seed))
    return {
        **NAMESPACES.type_meta,
        "metadata": {
            "name": name,
            "labels": {keys.ROLE: ROLE_SEED},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
    }


def copy_of(source: GardenSecret, namespace: str) -> Object:
    content = dict(source.content or {})
    meta = {
        "name": source.name,
        "namespace": namespace,
        "labels": content.pop("labels", {}),
        "annotations": content.pop("annotations", {}),
    }
    return {**SECRETS.type_meta, "metadata": meta, **content}


def has_to_be_made_anew(present: Object, wanted: Object) -> bool:
    """Whether the API server would refuse the change, of a type or of immutable content."""
    is_other_type = copied(present)["type"] != wanted["type"]
    is_frozen = present.get("immutable") is True
    return is_other_type or (is_frozen and (copied(present)["data"] != wanted["data"] or not wanted.get("immutable")))


def updated(present: Object, wanted: Object) -> Object:
    """Present copy with the content of its source; other metadata stays."""
    meta = {name: value for name, value in metadata(present).items() if name != "managedFields"}
    taken = {name: metadata(wanted)[name] for name in ("labels", "annotations")}
    return {**wanted, "metadata": {**meta, **taken}}
