"""Changes that the agent would make to objects, determined by dry runs of its own writes.

Each object is merged like the agent would merge it, and the API server returns the result, defaults and webhooks
included, and its warnings. So there are no differences where there is nothing to do. The agent's rules decide which
objects would be removed, and which stay.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_APPLIED
from gardener.keys import ADOPT, FIELD_MANAGER, KEEP_OBJECT, ORIGIN
from gardener.managed_resource import jobs
from gardener.managed_resource.adoption import adoption_problem
from gardener.managed_resource.changes import Change, changes
from gardener.managed_resource.inventory import InventoryDiff, only_announced
from gardener.managed_resource.merge import MergeError
from gardener.managed_resource.messages import held_text, strict_text
from gardener.managed_resource.plan import Plan, PlannedObject
from gardener.managed_resource.references import key_of_reference, listed_in
from gardener.managed_resource.remedies import with_remedy
from gardener.managed_resource.removal_rules import Disposition, disposition
from gardener.managed_resource.warnings import FieldValidationError, dropped_texts, field_validation
from gardener.overview.hints import command
from gardener.overview.objects import short_name
from gardener.overview.states import status_of
from gardener.responsibility import parse_origin
from kube.differences import dropped_fields
from kube.errors import BadRequest, Forbidden, Invalid, KubeError, NotFound
from kube.objects import Key, Object, annotations, group_of, is_deleting, key, mapping, spec, text
from kube.runtime.client import Client
from kube.write_mode import FieldValidation, WriteMode
from kubectl.errors import UserError
from kubectl.mr.changes import described
from kubectl.mr.desired import Merging, autoscaled, plan_of, read_contents
from kubectl.mr.live import read_object
from kubectl.session import Session, gathered
from kubectl.style import BLUE, DIM, GREEN, RED, YELLOW, Line, Word, counted

_AT_ONCE = 8
_DEFINITION, _NAMESPACE = "CustomResourceDefinition", "Namespace"
_LACKS_RIGHTS = " cannot "
"""Phrase of authorizers; admission uses other words."""


class What(StrEnum):
    """Effect on an object."""

    UNCHANGED = "unchanged"
    """Reported only because of warnings of the API server."""
    CHANGED = "changed"
    CREATED = "created"
    TAKEN_OVER = "takenOver"
    """It exists, and does not belong to this ManagedResource."""
    REMOVED = "removed"
    RELEASED = "released"
    """It stays, and is not managed any more."""
    REFUSED = "refused"
    """It can't be applied."""
    UNKNOWN = "unknown"


FAILURES = frozenset({What.REFUSED, What.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Difference:
    name: str
    what: What
    changes: Sequence[Change] = ()
    reason: str = ""
    """Description of the problem, or the reason why it is taken over or stays."""
    warnings: Sequence[str] = ()

    def json(self) -> Object:
        data: Object = {"name": self.name, "what": self.what}
        if self.changes:
            data["changes"] = [change.json() for change in self.changes]
        if self.warnings:
            data["warnings"] = list(self.warnings)
        field = "problem" if self.what in FAILURES else "reason"
        return data | ({field: self.reason} if self.reason else {})


async def differences(session: Session, managed_resource: Object, secrets: Sequence[Object]) -> list[Difference]:
    """Changes by a pass over the ManagedResource if these were its Secrets; empty: none.

    Raises:
        UserError: no pass would do anything.
        KubeError: unknown.
    """
    if is_deleting(managed_resource):
        raise UserError("it is being deleted", hint=f"what is left of it: {command('describe', key(managed_resource))}")
    try:
        validation = field_validation(managed_resource)
    except FieldValidationError as error:
        raise UserError(f"nothing is applied: {error}") from error
    plan = await plan_of(managed_resource, secrets, session.target.discovery)
    wanted = plan.wanted()
    look = _Look(
        session,
        managed_resource,
        Merging(managed_resource, await autoscaled(session.target)),
        validation,
        InventoryDiff.of(managed_resource, plan),
        frozenset(each.key.name.partition(".")[2] for each in wanted if each.reference.get("kind") == _DEFINITION),
        frozenset(_without_namespace(wanted)),
        frozenset(each.key.name for each in wanted if each.reference.get("kind") == _NAMESPACE),
        await _finished_jobs(session, managed_resource, plan),
    )
    problems = [Difference("document", What.REFUSED, reason=error) for error in plan.decode_errors]
    found = await gathered(look.at_wanted, wanted, at_once=_AT_ONCE)
    leaving = [*look.inventory.unwanted, *look.inventory.released]
    found += await gathered(look.at_unwanted, leaving, at_once=_AT_ONCE)
    return [*problems, *(difference for difference in found if difference)]


def _without_namespace(wanted: Iterable[PlannedObject]) -> Iterator[tuple[str, str]]:
    """Group and kind of cluster-scoped kinds whose definitions are among the objects."""
    for each in wanted:
        definition = spec(each.object()) if each.reference.get("kind") == _DEFINITION else {}
        if definition.get("scope") == "Cluster":
            yield text(definition.get("group")), text(mapping(definition.get("names")).get("kind"))


async def _finished_jobs(session: Session, managed_resource: Object, plan: Plan) -> frozenset[str]:
    """Jobs that are removed when they have finished, and that the agent has applied from exactly these manifests.

    It does not run such a Job again. By object key.
    """
    found = {each.name: each.digest for each in plan.wanted() if jobs.is_removed_job(each)}
    listed = jobs.digests(managed_resource)
    ran = frozenset(name for name, digest in found.items() if listed.get(name) == digest)
    checksum = (managed_resource.get("status") or {}).get("secretsDataChecksum")
    if len(ran) == len(found) or not checksum or status_of(managed_resource, RESOURCES_APPLIED) != "True":
        return ran
    if plan.checksum != checksum:
        contents = await read_contents(session.source.client, managed_resource)
        plan = await plan_of(managed_resource, contents.secrets, session.target.discovery)
    applied = {each.name: each.digest for each in plan.wanted()} if plan.checksum == checksum else {}
    return ran | {name for name, digest in found.items() if applied.get(name) == digest}


@dataclass(frozen=True, slots=True)
class _Look:
    """State for comparing the objects of one ManagedResource."""

    session: Session
    managed_resource: Object
    merging: Merging
    validation: FieldValidation
    inventory: InventoryDiff
    defined: frozenset[str]
    """Groups of kinds that the ManagedResource itself defines."""
    cluster_scoped: frozenset[tuple[str, str]]
    """Those of these kinds that have no namespace, by group and kind."""
    namespaces: frozenset[str]
    """Namespaces among its objects, which may have to be created."""
    finished: frozenset[str]
    """Jobs that are not run again if they are gone, by object key."""

    async def at_wanted(self, wanted: PlannedObject) -> Difference | None:
        name, group = short_name(wanted.reference), group_of(wanted.reference.get("apiVersion") or "")
        if wanted.resource is None and group in self.defined:
            if (group, wanted.reference.get("kind")) in self.cluster_scoped:
                name = short_name({**wanted.reference, "namespace": ""})
            return Difference(name, What.CREATED)
        if wanted.resource is None or wanted.problem:
            return Difference(name, What.REFUSED, reason=wanted.problem)
        try:
            return await self._compared(name, wanted)
        except (BadRequest, Forbidden, Invalid, NotFound, MergeError, _NotOursError) as error:
            if isinstance(error, Forbidden) and _LACKS_RIGHTS in str(error):
                reason = f"{error}; the dry run needs the permission to create and update"
                return Difference(name, What.UNKNOWN, reason=reason)
            return Difference(name, What.REFUSED, reason=with_remedy(str(error), error))
        except KubeError as error:
            return Difference(name, What.UNKNOWN, reason=str(error))

    async def _compared(self, name: str, wanted: PlannedObject) -> Difference | None:
        live = await read_object(self.session.target, wanted.reference)
        if live is not None and wanted.is_ignored:
            return None
        if live is None and wanted.name in self.finished:
            return None
        former = await self._former(live, wanted) if live is not None else ""
        would_be, warnings = await self._dry_run(wanted, live)
        if live is None:
            return Difference(name, What.CREATED, warnings=warnings)
        found = list(changes(live, would_be))
        if former:
            return Difference(name, What.TAKEN_OVER, found, reason=former, warnings=warnings)
        if not found and not warnings:
            return None
        return Difference(name, What.CHANGED if found else What.UNCHANGED, found, warnings=warnings)

    async def _former(self, live: Object, wanted: PlannedObject) -> str:
        """Previous owner of the live object; empty if it is this ManagedResource. Raises _NotOursError."""
        origin = annotations(live).get(ORIGIN) or ""
        if not origin:
            if wanted.name in self.inventory.previous:
                return ""
            of_managed_resource = annotations(self.managed_resource).get(ADOPT) or ""
            refused = adoption_problem(wanted.object(), resource=wanted.text, of_managed_resource=of_managed_resource)
            if refused:
                raise _NotOursError(refused)
            return "it exists without an owner"
        owner = _owner(origin)
        if owner == key(self.managed_resource):
            return ""
        if await self._is_held(owner, wanted.name):
            raise _NotOursError(held_text(wanted.text, origin, is_certain=True))
        return f"it was of ManagedResource {origin}"

    async def _is_held(self, owner: Key | None, name: str) -> bool:
        """Whether the owner is another ManagedResource that exists, and lists the object."""
        if owner is None or owner == key(self.managed_resource):
            return False
        holder = await self.session.source.client.find(MANAGED_RESOURCES, owner)
        return holder is not None and name in map(key_of_reference, listed_in(holder))

    async def _dry_run(self, wanted: PlannedObject, live: Object | None) -> tuple[Object, Sequence[str]]:
        """Result of the agent's write, and warnings to report."""
        assert wanted.resource is not None
        merged = self.merging.merged(wanted, live)
        mode = WriteMode(self.validation, dry_run=True, field_manager=FIELD_MANAGER)
        warned: list[str] = []
        client: Client = self.session.target.client
        write = client.create if live is None else client.replace
        try:
            would_be = await write(wanted.resource, merged, mode=mode, warnings=warned)
        except NotFound:
            if live is not None or wanted.key.namespace not in self.namespaces:
                raise
            return merged, ()
        dropped = dropped_texts(wanted.reference, warned, dropped_fields(merged, would_be, field_manager=FIELD_MANAGER))
        if dropped and self.validation is FieldValidation.STRICT:
            raise BadRequest(400, message=strict_text(dropped))
        return would_be, [*warned, *dropped]

    async def at_unwanted(self, reference: Object) -> Difference | None:
        name = short_name(reference)
        try:
            live = await read_object(self.session.target, reference)
            if live is None:
                return None
            if reference in self.inventory.released:
                return Difference(name, What.RELEASED, reason="its annotation sets the mode Ignore")
            return await self._removal(reference, name, live)
        except KubeError as error:
            return Difference(name, What.UNKNOWN, reason=str(error))

    async def _removal(self, reference: Object, name: str, live: Object) -> Difference | None:
        origin, object_key = annotations(live).get(ORIGIN) or "", key_of_reference(reference)
        is_held = await self._is_held(_owner(origin), object_key)
        found = disposition(
            live,
            origin=str(key(self.managed_resource)),
            held_by_other=lambda _: is_held,
            garbage_collector=True,
            is_ours_unstamped=object_key not in only_announced(self.managed_resource),
        )
        return Difference(name, What.REMOVED) if found is Disposition.DELETE else _left(name, found, origin)


def _owner(origin: str) -> Key | None:
    try:
        return parse_origin(origin).key
    except ValueError:
        return None


def _left(name: str, found: Disposition, origin: str) -> Difference | None:
    reasons = {
        Disposition.KEEP: f"it has the annotation {KEEP_OBJECT}",
        Disposition.COLLECTED: "the garbage collector removes it when nothing refers to it any more",
        Disposition.HANDED_OVER: f"it is of ManagedResource {origin} now",
    }
    return Difference(name, What.RELEASED, reason=reasons[found]) if found in reasons else None


class _NotOursError(Exception):
    """Another ManagedResource owns the object, or it may not be taken over."""


# --- output

_WORDS = {
    What.CHANGED: Word("would be changed", BLUE),
    What.CREATED: Word("would be created", GREEN),
    What.TAKEN_OVER: Word("would be taken over", YELLOW),
    What.REMOVED: Word("would be removed", RED),
    What.RELEASED: Word("would be left as it is, and not managed any more", YELLOW),
    What.REFUSED: Word("cannot be applied", RED),
    What.UNKNOWN: Word("cannot be compared", RED),
}


def lines(found: Iterable[Difference]) -> Iterator[Line]:
    for difference in found:
        if difference.what is not What.UNCHANGED:
            yield [Word("► ", BLUE), f"{difference.name} ", _WORDS[difference.what]]
        if difference.reason:
            yield ["  ", Word(difference.reason, DIM)]
        for change in difference.changes:
            yield from described(change)
        yield from ([Word("⚠ ", YELLOW), f"{difference.name}: {text}"] for text in difference.warnings)


_COUNTED = {**_WORDS, What.RELEASED: "would be left"}


def summary(found: Sequence[Difference]) -> str:
    counts = {what: sum(difference.what is what for difference in found) for what in _COUNTED}
    counts_in_words = ", ".join(f"{count} {_COUNTED[what]}" for what, count in counts.items() if count)
    return f"{counted(len(found), 'object')}: {counts_in_words}"
