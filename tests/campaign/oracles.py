"""What is seen, compared with what has to be. Pure: snapshots, calls and times in, problems out.

    state       what is in the clusters is what users want
    leaked      nothing else of ours is left over
    lost        nothing that is referred to was collected
    foreign     what belongs to others is as it was
    rest        no program writes when there is nothing to do
    moved       what was handed over to another agent is not deleted
    writers     two replicas never write at the same time: only who holds the lease does
    admission   none is lost; one that fails at first has a reason that no server can help
    levels      memory and open files are back where they were
    logs        no part of a program ended by an error of its own

State is queried until it is as it has to be, for a while; the others must hold at once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from agent.shared.token_requestor.rules.renewal import renew_time
from campaign.manifests import MANAGED_KINDS, WORK, Expected, Place, place_of_object
from campaign.model import Model
from campaign.moves import Stay
from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import (
    GARBAGE_COLLECTABLE,
    POLICY_SERVICE_NAME,
    PURPOSE,
    PURPOSE_TOKEN_REQUESTOR,
    TOKEN_RENEW_TIMESTAMP,
)
from gardener.managed_resource.references import key_of, key_of_reference
from kube.objects import Object, annotations, condition, is_deleting, labels, uid
from kube.resources import NETWORK_POLICIES, NODES, PODS, SECRETS


@dataclass(frozen=True, slots=True)
class Problem:
    oracle: str
    text: str
    place: Place | None = None
    """Whose writes are to be listed."""

    def __str__(self) -> str:
        return f"{self.oracle}: {self.place}: {self.text}" if self.place else f"{self.oracle}: {self.text}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    objects: Mapping[Place, Object]
    token_users: Mapping[Place, str]
    """Whose tokens are in Secrets, as the API server reports; empty: it does not accept them."""
    at: datetime


_MANAGED = {resource.plural: resource for resource in MANAGED_KINDS.values()}

# --- state


def state_problems(
    model: Model, expected: Expected, seen: Snapshot, *, foreign: Mapping[Place, Object], namespaces: Iterable[str]
) -> list[Problem]:
    """`namespaces` of the target cluster are those that users of this campaign have for themselves."""
    return [
        *_managed(expected, seen),
        *_statuses(model, expected, seen),
        *_left_over(model, expected, seen, foreign),
        *_policies(expected, seen, foreign),
        *_collected(expected, seen),
        *_tokens(expected, seen),
        *_nodes(expected, seen),
        *_pods(seen, set(namespaces)),
    ]


def _managed(expected: Expected, seen: Snapshot) -> Iterator[Problem]:
    for place, (manifest, owner) in expected.managed.items():
        live = seen.objects.get(place)
        if live is None or is_deleting(live):
            yield Problem("state", "is missing" if live is None else "is being deleted", place)
        elif not holds(live, manifest):
            yield Problem("state", "is not as in its manifest", place)
        elif annotations(live).get(keys.ORIGIN) != f"{WORK}/{owner}":
            yield Problem("state", f"has the origin {annotations(live).get(keys.ORIGIN)}, not {owner}", place)


def _statuses(model: Model, expected: Expected, seen: Snapshot) -> Iterator[Problem]:
    of_owners: dict[str, list[Object]] = {name: [] for name in model["managed"]}
    for manifest, owner in expected.managed.values():
        of_owners[owner].append(manifest)
    for name, manifests in of_owners.items():
        place = Place("source", MANAGED_RESOURCES, WORK, name)
        live = seen.objects.get(place)
        if live is None:
            yield Problem("state", "is missing", place)
            continue
        for type_, good in (
            ("ResourcesApplied", "True"),
            ("ResourcesHealthy", "True"),
            ("ResourcesProgressing", "False"),
        ):
            found = condition(live, type_) or {}
            if found.get("status") != good:
                yield Problem("state", f"{type_}: {found.get('reason')}: {found.get('message')}", place)
        status = live.get("status") or {}
        listed = sorted(key_of_reference(entry) for entry in status.get("resources") or [])
        if listed != sorted(map(key_of, manifests)):
            yield Problem("state", f"lists {len(listed)} objects, not its {len(manifests)}", place)
        if status.get("pendingResources"):
            yield Problem("state", "still lists what is about to be created", place)


def _left_over(model: Model, expected: Expected, seen: Snapshot, foreign: Mapping[Place, Object]) -> Iterator[Problem]:
    for place, live in seen.objects.items():
        if place in foreign:
            continue
        ours = annotations(live).get(keys.ORIGIN, "").startswith(f"{WORK}/") and place.resource != PODS
        if ours and place not in expected.managed:
            yield Problem("leaked", "is left over", place)
        elif place.resource == MANAGED_RESOURCES and place.name not in model["managed"]:
            yield Problem("leaked", "is still there", place)


def _policies(expected: Expected, seen: Snapshot, foreign: Mapping[Place, Object]) -> Iterator[Problem]:
    for place, selector in expected.policies.items():
        live = seen.objects.get(place)
        if live is None or is_deleting(live):
            yield Problem("state", "is missing", place)
        elif selector is not None and (live.get("spec") or {}).get("podSelector") != selector:
            yield Problem("state", "selects other pods than its Service", place)
    for place, live in seen.objects.items():
        ours = place.resource == NETWORK_POLICIES and POLICY_SERVICE_NAME in labels(live)
        if ours and place not in expected.policies and place not in foreign:
            yield Problem("leaked", "is left over", place)


def _collected(expected: Expected, seen: Snapshot) -> Iterator[Problem]:
    for place, is_used in expected.collectables.items():
        live = seen.objects.get(place)
        if is_used and (live is None or is_deleting(live)):
            yield Problem("lost", "was collected although something refers to it", place)
        if not is_used and live is not None:
            yield Problem("leaked", "was not collected although nothing refers to it", place)
    for place, live in seen.objects.items():
        if labels(live).get(GARBAGE_COLLECTABLE) == "true" and place not in expected.collectables:
            yield Problem("leaked", "it has no owner, and it was not collected", place)


def _tokens(expected: Expected, seen: Snapshot) -> Iterator[Problem]:
    for place, user in expected.tokens.items():
        found = seen.token_users.get(place)
        if found != user:
            yield Problem(
                "state", f"has {f'a token of {found}' if found else 'no token that works'}, not of {user}", place
            )
    for place, live in seen.objects.items():
        if place.resource != SECRETS or labels(live).get(PURPOSE) != PURPOSE_TOKEN_REQUESTOR:
            continue
        renewal = renew_time(annotations(live).get(TOKEN_RENEW_TIMESTAMP, ""))
        if renewal is None:
            yield Problem("state", "does not report when its token is renewed", place)
        elif renewal <= seen.at:
            yield Problem("state", f"should have got a new token at {renewal}", place)


def _nodes(expected: Expected, seen: Snapshot) -> Iterator[Problem]:
    for name, waits in expected.tainted.items():
        place = Place("target", NODES, "", name)
        live = seen.objects.get(place)
        if live is None:
            yield Problem("state", "is missing", place)
            continue
        taints = [taint["key"] for taint in (live.get("spec") or {}).get("taints") or []]
        is_tainted = "node.gardener.cloud/critical-components-not-ready" in taints
        if is_tainted != waits:
            text = "lost its taint although a driver is missing" if waits else "still has the taint"
            yield Problem("state", text, place)


def _pods(seen: Snapshot, namespaces: set[str]) -> Iterator[Problem]:
    for place, live in seen.objects.items():
        if place.resource == PODS and place.namespace in namespaces and not is_deleting(live):
            profile = (((live.get("spec") or {}).get("securityContext")) or {}).get("seccompProfile")
            if profile != {"type": "RuntimeDefault"}:
                yield Problem("admission", "was created without having been changed by the webhook", place)


def holds(live: Any, wanted: Any) -> bool:
    """Whether all that the manifest states is so; the API server and webhooks may have added to it."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(name in live and holds(live[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        return isinstance(live, list) and len(live) >= len(wanted) and all(map(holds, live, wanted))
    return bool(live == wanted)


# --- foreign


def foreign_problems(before: Mapping[Place, Object], seen: Snapshot) -> list[Problem]:
    """All of these must be as they were, down to the version."""
    found = []
    for place, obj in before.items():
        live = seen.objects.get(place)
        if live is None:
            found.append(Problem("foreign", "was deleted", place))
        elif uid(live) != uid(obj):
            found.append(Problem("foreign", "was deleted and recreated", place))
        elif live["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            found.append(Problem("foreign", "was changed", place))
    return found


# --- calls


@dataclass(frozen=True, slots=True)
class Write:
    """A write that an API server got, from its audit log."""

    at: float
    """Seconds since the epoch, when the API server received it."""
    user: str
    verb: str
    cluster: str
    resource: str
    namespace: str
    name: str
    status: int

    def __str__(self) -> str:
        return (
            f"{self.verb} {self.resource} {self.namespace}/{self.name} in {self.cluster} by {self.user}: {self.status}"
        )


def by(write: Write, user: str) -> Write:
    """The same write, by that name of its user."""
    return replace(write, user=user)


def rest_problems(writes: Sequence[Write], *, seconds: float) -> list[Problem]:
    """In steady state only leases are renewed."""
    done = [str(write) for write in writes if write.resource != "leases"]
    if not done:
        return []
    return [Problem("rest", f"{len(done)} writes in {seconds:.0f} s with nothing to do: {'; '.join(done[:5])}")]


def writer_problems(writes: Iterable[Write], *, lease: str, tolerance: float) -> list[Problem]:
    """`tolerance` is how many seconds a write may come after another replica took the lease: it was on its way."""
    found: list[Problem] = []
    holder, since = "", 0.0
    for write in sorted(writes, key=lambda write: write.at):
        if not 200 <= write.status < 300:
            continue
        if write.resource == "leases":
            if write.name == lease and write.user != holder:
                holder, since = write.user, write.at
        elif write.user != holder and holder and write.resource != "events" and write.at > since + tolerance:
            found.append(Problem("writers", f"{write}, {write.at - since:.1f} s after {holder} took the lease"))
    return found[:20]


def move_problems(stays: Iterable[Stay], writes: Iterable[Write]) -> list[Problem]:
    """Of what was handed over; `writes` are those of agents."""
    deletions: dict[Place, list[Write]] = {}
    for write in writes:
        if write.verb == "delete" and 200 <= write.status < 300 and write.resource in _MANAGED:
            place = Place(write.cluster, _MANAGED[write.resource], write.namespace, write.name)
            deletions.setdefault(place, []).append(write)
    return [
        Problem("moved", f"{write}, {write.at - stay.begin:.1f} s after it was claimed", place)
        for stay in stays
        for place in [place_of_object(stay.reference)]
        for write in deletions.get(place, [])
        if stay.begin <= write.at <= stay.end
    ]


# --- admissions


@dataclass(frozen=True, slots=True)
class Failure:
    """An admission that failed at first."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Excuse:
    """While that lasted, an admission may fail at first."""

    begin: float
    end: float
    reason: str


@dataclass(slots=True)
class Admissions:
    succeeded: int = 0
    failures: list[Failure] = field(default_factory=list)
    unchanged: int = 0
    """Let through without having been changed."""
    lost: list[str] = field(default_factory=list)
    """Never succeeded, however often they were tried."""


def admission_problems(admissions: Admissions, excuses: Sequence[Excuse]) -> list[Problem]:
    found = [Problem("admission", f"was lost: {text}") for text in admissions.lost]
    if admissions.unchanged:
        found.append(Problem("admission", f"{admissions.unchanged} pods were let through without having been changed"))
    found += [
        Problem("admission", f"failed although a server was ready all the time: {failure.text}")
        for failure in admissions.failures
        if not any(excuse.begin <= failure.at <= excuse.end for excuse in excuses)
    ]
    return found[:20]


# --- levels and logs


@dataclass(frozen=True, slots=True)
class Level:
    """What a process uses."""

    resident: int
    """Bytes."""
    files: int


def level_problems(
    before: Mapping[str, Level], after: Mapping[str, Level], *, more_bytes: int, more_files: int
) -> list[Problem]:
    found = []
    for name, level in after.items():
        base = before[name]
        if level.resident > base.resident + more_bytes:
            grown = (level.resident - base.resident) / 2**20
            found.append(Problem("levels", f"{name} uses {grown:.0f} MiB more memory than at the begin"))
        if level.files > base.files + more_files:
            found.append(Problem("levels", f"{name} has {level.files} open files, at the begin {base.files}"))
    return found


_EXPECTED_TRACES = (
    '"error":"leader election lost"',
    # uvloop's way to report that a connection was reset while something was to be sent.
    '"msg":"Fatal error on SSL protocol',
)


def log_problems(program: str, log: str) -> list[Problem]:
    """Errors that are the program's own: those with a trace."""
    traced = [
        line
        for line in log.splitlines()
        if ("Traceback" in line or '"stacktrace"' in line) and not any(known in line for known in _EXPECTED_TRACES)
    ]
    return [Problem("logs", f"{program}: {line[:1500]}") for line in traced[:3]]
