"""One pass over a Service: compute the desired policies, write the difference.

A pass over a Service whose policies are right costs no request. Each policy is written independently: a failure delays
no other. A Service with much to write yields to others now and then; deletions come first. While the gateways that lead
to a Service are unknown, as just after a start, policies are added, but none is changed or deleted.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import structlog

from agent.shared.network_policy.istio import Gateways
from agent.shared.network_policy.rules.limits import (
    MOST_NOTES,
    MOST_POLICIES,
    MOST_PORTS,
    WRITES_AT_ONCE,
    WRITES_BEFORE_OTHERS,
)
from agent.shared.network_policy.rules.policies import (
    Desired,
    Policy,
    Rules,
    compute_policies,
    from_world_name,
    is_handled,
)
from agent.shared.network_policy.rules.projections import Existing, Service
from agent.shared.network_policy.stores import PolicyStores
from gardener import keys
from kube.errors import AlreadyExists, KubeError, NamespaceTerminating, NotFound
from kube.objects import Key, Object
from kube.paths import pointer_step
from kube.repeats import Repeats
from kube.resources import NETWORK_POLICIES
from kube.runtime.client import JSON_PATCH, Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.events import EventRecorder, EventType, clip
from kube.runtime.priorities import RESYNC
from kube.runtime.yielding import Yielding

REPORTER = "networkpolicy-controller"

INVALID_ANNOTATION = "InvalidAnnotation"
NAME_TAKEN = "NetworkPolicyNameTaken"
TAKEN_OVER = "NetworkPolicyTakenOver"
LABEL_TOO_LONG = "PodLabelSelectorKey(s)TooLong"
GATEWAY_NOT_USABLE = "GatewayNotUsable"
LIMIT_EXCEEDED = "LimitExceeded"

_MOST_PORTS = f"The first {MOST_PORTS} ports of a Service get network policies"
_MOST_POLICIES = f"A Service gets {MOST_POLICIES} network policies at most"

_LONGEST_SECONDS = 10.0
"""Seconds after which a pass with many writes starts again, with the present state."""
_UNKNOWN_SECONDS = 0.5
"""Seconds until the next pass over a Service whose gateways are not all known."""

Note = tuple[str, str]
"""Reason and message."""
Write = Callable[[], Awaitable[None]]
"""Function that starts a write; a write that is given up before has no effect."""

log = structlog.get_logger("networkpolicy")


class _Notes:
    """Problems of a Service to report."""

    def __init__(self) -> None:
        self._by_reason: dict[str, dict[str, None]] = {}

    def add(self, reason: str, message: str) -> None:
        messages = self._by_reason.setdefault(reason, {})
        if len(messages) < MOST_NOTES:
            messages[message] = None
        else:
            messages[f"Only the first {MOST_NOTES} problems are reported"] = None

    def all(self) -> frozenset[Note]:
        return frozenset((reason, message) for reason, messages in self._by_reason.items() for message in messages)


class Reconciler:
    """Write the policies of Services.

    Args:
        recorder: writes Events about Services.
        others_wait: whether other Services wait for a worker.
        now: monotonic seconds.
    """

    def __init__(
        self,
        *,
        client: Client,
        stores: PolicyStores,
        gateways: Gateways,
        rules: Rules,
        recorder: EventRecorder,
        others_wait: Callable[[], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._stores = stores
        self._gateways = gateways
        self._rules = rules
        self._recorder = recorder
        self._others_wait = others_wait
        self._now = now
        self._warned: Repeats[Note] = Repeats()
        self._failed: dict[Key, set[Key]] = {}
        """Policies of a Service that could not be written; others are written first."""

    @property
    def limited(self) -> int:
        """Number of Services that exceed a limit."""
        return sum(any(reason == LIMIT_EXCEEDED for reason, _ in notes) for notes in self._warned.all())

    async def reconcile(self, key: Key) -> Result:
        """Write the policies of a Service.

        Raises:
            ExceptionGroup: single NetworkPolicies could not be written.
        """
        began = self._now()
        await self._gateways.look(key)
        service = self._stores.services.get(key)
        existing = dict(self._stores.policies.by_index("owner", key))
        is_known = self._gateways.are_known(key)
        desired = await self._desired(key, service, existing)
        if service is None or desired is None:
            self._warned.forget(key)
            deletions = {name: partial(self._delete, name, policy) for name, policy in existing.items()}
            return await self._write(key, service, deletions, began=began) or Done()
        writes: dict[Key, Write] = {
            name: partial(self._delete, name, present)
            for name, present in existing.items()
            if is_known and name not in desired.policies and not _is_spared(service, name, count=len(existing))
        }
        notes, yielding = self._notes(service, desired), Yielding()
        for policy in desired.policies.values():
            await yielding.after_long()
            present = self._stores.policies.get(policy.key)
            if present is not None and present.owner != key and self._stores.services.get(present.owner) is not None:
                self._stores.waiting[policy.key] = key
                notes.add(NAME_TAKEN, _taken(policy.key, present.owner))
            elif present is None or present.uid == self._stores.deleted.get(policy.key):
                writes[policy.key] = partial(self._create, service, policy)
            elif is_known and (present.owner != key or present.digest != policy.digest()):
                writes[policy.key] = partial(self._update, service, policy, present)
        self._warn(service, notes.all())
        if again := await self._write(key, service, writes, began=began):
            return again
        return Done() if is_known else RequeueAfter(_UNKNOWN_SECONDS)

    async def _desired(self, key: Key, service: Service | None, existing: Collection[Key]) -> Desired | None:
        """Compute the policies, while other tasks get turns; None if the Service should have none."""
        namespace = self._stores.namespace(key.namespace)
        if service is None or service.is_deleting or not service.selector:
            return None
        if not is_handled(namespace, self._rules.namespace_selectors):
            return None
        if namespace is None:
            raise ReconcileError(f"failed fetching service namespace {key.namespace}: it is not known yet")
        around = self._stores.around(key, existing=existing, routes=self._gateways.routes(key))
        desired, yielding = Desired(), Yielding()
        for _ in compute_policies(desired, service, self._rules, around):
            await yielding.after_long()
        return desired

    # --- Events

    def _notes(self, service: Service, desired: Desired) -> "_Notes":
        notes = _Notes()
        for problem in service.settings.problems:
            reason = LIMIT_EXCEEDED if problem.is_limit else INVALID_ANNOTATION
            notes.add(reason, f"{problem.annotation}: {problem.message}")
        if service.ports_left_out:
            notes.add(LIMIT_EXCEEDED, f"{_MOST_PORTS}; {service.ports_left_out} get none; use several Services")
        if desired.namespaces_left_out:
            left_out = f"{desired.namespaces_left_out} namespaces that it allows get none"
            notes.add(LIMIT_EXCEEDED, f"{_MOST_POLICIES}; {left_out}; allow fewer namespaces, or fewer ports")
        for message in self._gateways.problems(service.key):
            notes.add(GATEWAY_NOT_USABLE, message)
        for label in sorted(desired.shortened, key=lambda label: label.usual):
            message = (
                "Usual pod label selector has at least one key exceeding 63 characters and had to be mutated - "
                "consider shortening the namespace name or the service name "
                f"({label.usual} was mutated to {label.mutated})"
            )
            notes.add(LABEL_TOO_LONG, message)
        return notes

    def _warn(self, service: Service, notes: frozenset[Note]) -> None:
        """Record the warnings that former passes did not record."""
        for reason, message in sorted(self._warned.news(service.key, notes)):
            log.info("A Service needs attention", reason=reason, message=clip(message))
            self._event(service, "Warning", reason, message)

    def _event(self, service: Service, type_: EventType, reason: str, message: str) -> None:
        self._recorder.event(service.reference(), type_, reason, message, reporter=REPORTER)

    # --- writing

    async def _write(
        self, key: Key, service: Service | None, writes: Mapping[Key, Write], *, began: float
    ) -> RequeueAfter | None:
        """Write some policies, then some more unless others wait; return when to continue.

        Raises:
            ExceptionGroup: some could not be written, and no others are left.
        """
        failed = self._failed.pop(key, set())
        names = sorted(writes, key=failed.__contains__)
        errors: dict[Key, Exception] = {}
        done = 0
        while done < len(names):
            must_stop = self._others_wait() or self._now() - began > _LONGEST_SECONDS
            if done and (must_stop or self._stores.services.get(key) != service):
                break
            some = names[done : done + WRITES_BEFORE_OTHERS]
            errors |= await self._some(some, writes)
            done += len(some)
        if done < len(names):
            self._failed[key] = failed | errors.keys()
            if len(errors) < done:
                return RequeueAfter(0.0, RESYNC)
        if errors:
            raise _together(list(errors.values()))
        return None

    async def _some(self, names: Iterable[Key], writes: Mapping[Key, Write]) -> dict[Key, Exception]:
        """Write these policies, and return the errors."""
        slots = asyncio.Semaphore(WRITES_AT_ONCE)

        async def write(name: Key) -> None:
            async with slots:
                await writes[name]()

        results = await asyncio.gather(*map(write, names), return_exceptions=True)
        return {name: result for name, result in zip(names, results, strict=True) if isinstance(result, Exception)}

    async def _create(self, service: Service, policy: Policy) -> None:
        try:
            with self._writing(policy):
                self._stores.policies.observe(await self._client.create(NETWORK_POLICIES, _body(service, policy)))
        except AlreadyExists:
            await self._take_over(service, policy)
        except NamespaceTerminating:
            log.debug(
                "The namespace of a policy is being deleted; waiting for its watch event", networkPolicy=str(policy.key)
            )
        except KubeError as error:
            raise _failed("creating", policy.key, error) from error

    @contextmanager
    def _writing(self, policy: Policy) -> Iterator[None]:
        self._stores.written[policy.key] = policy.digest()
        try:
            yield
        finally:
            self._stores.written.pop(policy.key, None)

    async def _take_over(self, service: Service, policy: Policy) -> None:
        """Take over an existing policy of this name: it has no labels of a Service, or is too new to be cached."""
        try:
            live = await self._client.get(NETWORK_POLICIES, policy.key)
        except NotFound as error:
            raise _failed("creating", policy.key, error) from error
        present = Existing.of(live)
        if present.owner != service.key and self._stores.services.get(present.owner) is not None:
            raise ReconcileError(_taken(policy.key, present.owner))
        if present.owner != service.key:
            message = f"NetworkPolicy {policy.key} existed without the labels of this Service; it is replaced"
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
            with self._writing(policy):
                updated = await self._client.patch(
                    NETWORK_POLICIES, Key(namespace, name), patch, content_type=JSON_PATCH
                )
                self._stores.policies.observe(updated)
        except KubeError as error:
            raise _failed("updating", policy.key, error) from error

    async def _delete(self, name: Key, policy: Existing) -> None:
        namespace = self._stores.namespace(name.namespace)
        if self._stores.deleted.get(name) == policy.uid or (namespace is not None and namespace.is_terminating):
            return
        try:
            await self._client.delete_if_exists(NETWORK_POLICIES, name, uid=policy.uid)
        except KubeError as error:
            raise _failed("deleting", name, error) from error
        if self._stores.policies.get(name) == policy:
            self._stores.deleted[name] = policy.uid


def _together(errors: list[Exception]) -> ExceptionGroup[Exception]:
    if len(errors) > MOST_NOTES:
        left_out = ReconcileError(f"{len(errors) - MOST_NOTES} more NetworkPolicies could not be written")
        errors = [*errors[:MOST_NOTES], left_out]
    return ExceptionGroup("NetworkPolicies could not be written", errors)


def _is_spared(service: Service, name: Key, *, count: int) -> bool:
    """Whether a policy stays that is not desired, since the annotations of the Service are not clear.

    None stays if the Service has more (`count`) than the limit.
    """
    if count > MOST_POLICIES:
        return False
    if name == Key(service.key.namespace, from_world_name(service.key)):
        return service.settings.world_is_unclear
    return not service.settings.are_complete


def _body(service: Service, policy: Policy) -> Object:
    return {
        **NETWORK_POLICIES.type_meta,
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
