"""One pass over a Service: compute what should be there, write the difference.

A pass over a Service whose policies are right costs no request. Each policy is written for itself: one that fails
delays no other. While it is not known yet which gateways lead to a Service, as just after a start, policies are added,
but none is changed or taken away.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import structlog

from agent.shared.network_policy.istio import Gateways
from agent.shared.network_policy.policies import Desired, Policy, Rules, desired_policies, from_world_name, is_handled
from agent.shared.network_policy.projections import Existing, Service
from agent.shared.network_policy.stores import Stores
from gardener import keys
from kube.client import JSON_PATCH, Client
from kube.controller import Done, ReconcileError, RequeueAfter, Result
from kube.errors import AlreadyExists, KubeError, NamespaceTerminating, NotFound
from kube.events import EventRecorder, EventType
from kube.objects import Key, Object
from kube.paths import pointer_step
from kube.resources import NETWORK_POLICIES

REPORTER = "networkpolicy-controller"

INVALID_ANNOTATION = "InvalidAnnotation"
NAME_TAKEN = "NetworkPolicyNameTaken"
TAKEN_OVER = "NetworkPolicyTakenOver"
LABEL_TOO_LONG = "PodLabelSelectorKey(s)TooLong"
GATEWAY_NOT_USABLE = "GatewayNotUsable"

_AT_ONCE = 16
_UNKNOWN_SECONDS = 0.5
"""Until another look at a Service of which not all is known."""

Write = Callable[[], Awaitable[None]]
"""Begun when it is its turn: of writes that are given up before, nothing is left."""

log = structlog.get_logger("networkpolicy")


class Reconciler:
    """Keeps the policies of Services.

    Args:
        recorder: writes Events about Services.
    """

    def __init__(
        self, *, client: Client, stores: Stores, gateways: Gateways, rules: Rules, recorder: EventRecorder
    ) -> None:
        self._client = client
        self._stores = stores
        self._gateways = gateways
        self._rules = rules
        self._recorder = recorder
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._warned: dict[Key, frozenset[tuple[str, str]]] = {}

    async def reconcile(self, key: Key) -> Result:
        """Raises an ExceptionGroup of what went wrong with single policies."""
        service = self._stores.services.get(key)
        existing = dict(self._stores.policies.by_index("owner", key))
        desired = self._desired(key, service)
        if service is None or desired is None:
            self._warned.pop(key, None)
            await self._all(partial(self._delete, name, policy) for name, policy in existing.items())
            return Done()
        is_known = self._gateways.are_known(key)
        notes = self._notes(service, desired)
        writes: list[Write] = []
        for policy in desired.policies.values():
            present = self._stores.policies.get(policy.key)
            if present is not None and present.owner != key and self._stores.services.get(present.owner) is not None:
                self._stores.waiting[policy.key] = key
                notes.add((NAME_TAKEN, _taken(policy.key, present.owner)))
            elif present is None or present.uid == self._stores.deleted.get(policy.key):
                writes.append(partial(self._create, service, policy))
            elif is_known and (present.owner != key or present.digest != policy.digest()):
                writes.append(partial(self._update, service, policy, present))
        writes += [
            partial(self._delete, name, present)
            for name, present in existing.items()
            if is_known and name not in desired.policies and not _is_spared(service, name)
        ]
        self._warn(service, notes)
        await self._all(writes)
        return Done() if is_known else RequeueAfter(_UNKNOWN_SECONDS)

    def _desired(self, key: Key, service: Service | None) -> Desired | None:
        """None if the Service is not to have any policies."""
        namespace = self._stores.namespace(key.namespace)
        if service is None or service.is_deleting or not service.selector:
            return None
        if not is_handled(namespace, self._rules.namespace_selectors):
            return None
        if namespace is None:
            raise ReconcileError(f"failed fetching service namespace {key.namespace}: it is not known yet")
        around = self._stores.around(key, routes=self._gateways.routes(key))
        return desired_policies(service, self._rules, around)

    # --- Events

    def _notes(self, service: Service, desired: Desired) -> set[tuple[str, str]]:
        notes = {
            (INVALID_ANNOTATION, f"{problem.annotation}: {problem.message}") for problem in service.settings.problems
        }
        notes |= {(GATEWAY_NOT_USABLE, message) for message in self._gateways.problems(service.key)}
        for label in desired.shortened:
            message = (
                "Usual pod label selector has at least one key exceeding 63 characters and had to be mutated - "
                "consider shortening the namespace name or the service name "
                f"({label.usual} was mutated to {label.mutated})"
            )
            notes.add((LABEL_TOO_LONG, message))
        return notes

    def _warn(self, service: Service, notes: set[tuple[str, str]]) -> None:
        """Warn of what was not warned of in the passes before."""
        for reason, message in sorted(notes - self._warned.get(service.key, frozenset())):
            log.info("A Service needs attention", reason=reason, message=message)
            self._event(service, "Warning", reason, message)
        self._warned[service.key] = frozenset(notes)

    def _event(self, service: Service, type_: EventType, reason: str, message: str) -> None:
        self._recorder.event(service.reference(), type_, reason, message, reporter=REPORTER)

    # --- writing

    async def _all(self, writes: Iterable[Write]) -> None:
        results = await asyncio.gather(*(self._within_bounds(write) for write in writes), return_exceptions=True)
        errors = [result for result in results if isinstance(result, Exception)]
        if errors:
            raise ExceptionGroup("policies could not be written", errors)

    async def _within_bounds(self, write: Write) -> None:
        async with self._slots:
            await write()

    async def _create(self, service: Service, policy: Policy) -> None:
        try:
            created = await self._client.create(NETWORK_POLICIES, _body(service, policy))
        except AlreadyExists:
            await self._take_over(service, policy)
        except NamespaceTerminating:
            log.debug("The namespace of a policy goes; the watch will bring the news", networkPolicy=str(policy.key))
        except KubeError as error:
            raise _failed("creating", policy.key, error) from error
        else:
            self._stores.policies.observe(created)

    async def _take_over(self, service: Service, policy: Policy) -> None:
        """A policy of this name carries no labels of a Service, or is too new to be known."""
        try:
            live = await self._client.get(NETWORK_POLICIES, policy.key.name, namespace=policy.key.namespace)
        except NotFound as error:
            raise _failed("creating", policy.key, error) from error
        present = Existing.of(live)
        if present.owner != service.key and self._stores.services.get(present.owner) is not None:
            raise ReconcileError(_taken(policy.key, present.owner))
        if present.owner != service.key:
            message = f"NetworkPolicy {policy.key} was there already, without labels of this Service, and is replaced"
            self._event(service, "Warning", TAKEN_OVER, message)
        await self._update(service, policy, present, has_labels=bool(live["metadata"].get("labels")))

    async def _update(self, service: Service, policy: Policy, present: Existing, *, has_labels: bool = True) -> None:
        body = _body(service, policy)
        patch: list[Object] = [{"op": "replace", "path": "/metadata/resourceVersion", "value": present.version}]
        patch += _map_patch("/metadata/labels", body["metadata"]["labels"], is_there=has_labels)
        patch += _map_patch("/metadata/annotations", body["metadata"]["annotations"], is_there=present.has_annotations)
        patch.append({"op": "add", "path": "/spec", "value": policy.spec})
        name, namespace = policy.key.name, policy.key.namespace
        try:
            updated = await self._client.patch(
                NETWORK_POLICIES, name, patch, namespace=namespace, content_type=JSON_PATCH
            )
        except KubeError as error:
            raise _failed("updating", policy.key, error) from error
        self._stores.policies.observe(updated)

    async def _delete(self, name: Key, policy: Existing) -> None:
        namespace = self._stores.namespace(name.namespace)
        if self._stores.deleted.get(name) == policy.uid or (namespace is not None and namespace.is_terminating):
            return
        try:
            await self._client.delete(NETWORK_POLICIES, name.name, namespace=name.namespace, uid=policy.uid)
        except NotFound:
            pass
        except KubeError as error:
            raise _failed("deleting", name, error) from error
        if self._stores.policies.get(name) == policy:
            self._stores.deleted[name] = policy.uid


def _is_spared(service: Service, name: Key) -> bool:
    """Whether a policy that is not asked for stays, since what the Service asks for is not clear."""
    if name == Key(service.key.namespace, from_world_name(service.key)):
        return service.settings.world_is_unclear
    return not service.settings.are_complete


def _body(service: Service, policy: Policy) -> Object:
    return {
        "apiVersion": NETWORK_POLICIES.api_version,
        "kind": NETWORK_POLICIES.kind,
        "metadata": {
            "name": policy.key.name,
            "namespace": policy.key.namespace,
            "labels": {
                keys.POLICY_SERVICE_NAME: service.key.name,
                keys.POLICY_SERVICE_NAMESPACE: service.key.namespace,
            },
            "annotations": {keys.GARDENER_DESCRIPTION: policy.description},
        },
        "spec": policy.spec,
    }


def _map_patch(path: str, wanted: dict[str, str], *, is_there: bool) -> list[Object]:
    if not is_there:
        return [{"op": "add", "path": path, "value": wanted}]
    return [{"op": "add", "path": f"{path}/{pointer_step(name)}", "value": value} for name, value in wanted.items()]


def _taken(policy: Key, owner: Key) -> str:
    return f"NetworkPolicy {policy} belongs to Service {owner}; rename one of the two Services to have both"


def _failed(doing: str, policy: Key, error: KubeError) -> ReconcileError:
    return ReconcileError(f"{doing} NetworkPolicy {policy} failed: {error}")
