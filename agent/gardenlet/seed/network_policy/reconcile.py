"""One reconciliation of a namespace of the seed: exactly the policies that its labels select."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from agent.gardenlet.seed.namespace_policies import ExistingPolicy
from agent.gardenlet.seed.network_policy.resolver import Resolver
from agent.gardenlet.seed.network_policy.rules.networks import SeedNetworks
from agent.gardenlet.seed.network_policy.rules.policies import Policy, PolicyError, Surroundings, compute
from agent.gardenlet.seed.network_policy.stores import Stores
from gardener import keys
from gardener.network_policies import NAMES, Selector, is_selected, names_of
from kube.errors import KubeError, NamespaceTerminating
from kube.objects import Key, Object
from kube.paths import pointer_step
from kube.repeats import Repeats
from kube.resources import NETWORK_POLICIES
from kube.runtime.client import JSON_PATCH, Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.events import EventRecorder

NOT_MANAGED = "PolicyNotManaged"
_UNKNOWN_SECONDS = 1.0
_DESCRIPTION_PATH = f"/metadata/annotations/{pointer_step(keys.GARDENER_DESCRIPTION)}"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class _NotManaged(Exception):
    """A policy of this name has another owner."""

    def __init__(self, policy: ExistingPolicy) -> None:
        super().__init__()
        self.uid = policy.uid


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """Reconciler of namespaces.

    Args:
        additional: selectors of namespaces that get all policies.
        served_elsewhere: selectors of namespaces in which another program creates them.
    """

    client: Client
    stores: Stores
    resolver: Resolver
    networks: SeedNetworks
    additional: Sequence[Selector]
    served_elsewhere: Sequence[Selector]
    recorder: EventRecorder
    reporter: str
    _reported: Repeats[tuple[str, str]] = field(default_factory=Repeats)
    """Names and uids of policies with another owner, by namespace."""

    async def reconcile(self, key: Key) -> Result:
        namespace = self.stores.namespaces.get(key)
        if namespace is None:
            self._reported.forget(key)
            return Done()
        if namespace.is_terminating or is_selected(namespace.labels, self.served_elsewhere):
            return Done()
        wanted = names_of(key.name, namespace.labels, additional=self.additional)
        around = await self._surroundings(key.name)
        errors: list[Exception] = []
        self._reported.begin(key)
        for name in NAMES:
            policy = Key(key.name, name)
            try:
                await self._write(policy, around if name in wanted else None)
            except _NotManaged as found:
                self._report(key, policy, found.uid, is_wanted=name in wanted)
            except NamespaceTerminating:
                return Done()
            except (PolicyError, KubeError) as error:
                errors.append(_failed(policy, error))
        if errors:
            raise ExceptionGroup("NetworkPolicies could not be written", errors)
        return Done() if self.stores.are_shoots_known else RequeueAfter(_UNKNOWN_SECONDS)

    async def _surroundings(self, namespace: str) -> Surroundings:
        shoot = await self.stores.shoot(self.client, namespace)
        shoots = {} if shoot is None else {namespace: shoot}
        return Surroundings(
            seed=self.networks,
            endpoints=self.stores.endpoints,
            resolved=self.resolver.endpoints,
            shoots=shoots if self.stores.are_shoots_known else None,
        )

    async def _write(self, name: Key, around: Surroundings | None) -> None:
        """Write a policy, or delete it if `around` is None.

        Raises:
            _NotManaged: a policy of this name has another owner.
            PolicyError: it can't be computed.
        """
        present = self.stores.policies.get(name)
        if present is not None and not present.is_marked:
            raise _NotManaged(present)
        if around is None:
            if present is not None:
                await self._delete(name, present)
            return
        policy = compute(name.name, name.namespace, around)
        if policy is None:
            return
        if present is None:
            await self._create(name, policy)
        elif present.digest != policy.digest:
            await self._update(name, policy, present)

    async def _create(self, name: Key, policy: Policy) -> None:
        if created := await self.client.create_if_missing(NETWORK_POLICIES, _body(name, policy)):
            self.stores.policies.observe(created)
            log.info("Created a NetworkPolicy", networkPolicy=str(name))
        else:
            await self._take_over(name, policy)

    async def _take_over(self, name: Key, policy: Policy) -> None:
        """Adopt a policy of this name that is not watched, or too new for the cache."""
        present = ExistingPolicy.of(await self.client.get(NETWORK_POLICIES, name))
        assert present is not None  # it has the name of one
        if not present.is_marked:
            raise _NotManaged(present)
        if present.digest != policy.digest:
            await self._update(name, policy, present)

    async def _update(self, name: Key, policy: Policy, present: ExistingPolicy) -> None:
        """Update the policy; labels and annotations of other clients stay."""
        patch: list[Object] = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": present.version},
            {"op": "add", "path": _DESCRIPTION_PATH, "value": policy.description},
            {"op": "add", "path": "/spec", "value": policy.spec},
        ]
        updated = await self.client.patch(NETWORK_POLICIES, name, patch, content_type=JSON_PATCH)
        self.stores.policies.observe(updated)
        log.info("Updated a NetworkPolicy", networkPolicy=str(name))

    async def _delete(self, name: Key, present: ExistingPolicy) -> None:
        """Delete this version of the policy only, since it must still be marked."""
        if not await self.client.delete_if_exists(
            NETWORK_POLICIES,
            name,
            uid=present.uid,
            resource_version=present.version,
        ):
            return
        log.info("Deleted a NetworkPolicy", networkPolicy=str(name))

    def _report(self, key: Key, policy: Key, uid: str, *, is_wanted: bool) -> None:
        if not self._reported.is_new(key, (policy.name, uid)):
            return
        message = f"It lacks the annotation {keys.GARDENER_DESCRIPTION}, so the gardenlet does not manage it"
        if is_wanted:
            message += "; the namespace lacks a policy of this name: delete it, or create it again with another name"
        reference = NETWORK_POLICIES.reference(namespace=policy.namespace, name=policy.name, uid=uid)
        self.recorder.event(
            reference, "Warning" if is_wanted else "Normal", NOT_MANAGED, message, reporter=self.reporter
        )


def _failed(policy: Key, error: Exception) -> ReconcileError:
    failure = ReconcileError(f"failed to reconcile NetworkPolicy {policy}: {error}")
    failure.__cause__ = error
    return failure


def _body(name: Key, policy: Policy) -> Object:
    return {
        **NETWORK_POLICIES.type_meta,
        "metadata": {
            "name": name.name,
            "namespace": name.namespace,
            "annotations": {keys.GARDENER_DESCRIPTION: policy.description},
        },
        "spec": policy.spec,
    }
