"""Findings about a Project: phase, namespace, rights of others, what its deletion waits for, whether it is stale."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gardener import keys
from gardener.api.garden import PROJECTS, QUOTAS, SHOOTS, WORKLOAD_IDENTITIES
from gardener.garden import users as references
from gardener.garden.members import Identity, identity, members
from kube.clock import time_or_none
from kube.objects import (
    Key,
    Object,
    annotations,
    controller_of,
    finalizers,
    is_deleting,
    is_truthy,
    key,
    mapping,
    mappings,
    spec,
    text,
    uid,
)
from kube.paths import at
from kube.resources import NAMESPACES, ROLE_BINDINGS, SECRETS, SERVICE_ACCOUNTS
from kubectl.garden.why.finding import (
    Finding,
    Level,
    Users,
    about_it,
    command,
    deletion_begun,
    one_line,
    other_finalizers,
    together,
    when,
)

_HINDERED = ("NamespaceDeletion", "NamespaceContentRemaining", "NamespaceFinalizersRemaining")
"""Prefixes of the conditions of a namespace that state what its deletion waits for, if they are True."""
_BOUND = (
    (SECRETS, references.secrets),
    (WORKLOAD_IDENTITIES, references.workload_identities),
    (QUOTAS, references.quotas),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Surroundings of a Project."""

    namespace: Object | None = None
    """None if it does not exist."""
    is_namespace_known: bool = True
    """Whether its existence could be checked."""
    users: Sequence[Users] = ()
    """Objects in its namespace, or used from elsewhere."""
    role_bindings: Sequence[Object] = ()
    """All RoleBindings in its namespace."""


def namespace_of(project: Object) -> str:
    return text(spec(project).get("namespace"))


def used_from_elsewhere(namespace: str, shoots: Iterable[Object], bindings: Iterable[Object]) -> Iterator[Users]:
    """Objects of a namespace that Shoots use by bindings. Args: shoots, bindings: of all namespaces, both kinds of
    bindings.
    """
    used = {each for shoot in shoots for each in _bindings_of(shoot)}
    bound = [each for each in bindings if (_field(each), key(each)) in used]
    for resource, named in _BOUND:
        found = {own for each in bound for own in named(each) if own.namespace == namespace}
        if found:
            yield Users(resource, sorted(found))


def _bindings_of(shoot: Object) -> Iterator[tuple[str, Key]]:
    yield from (("secretRef", own) for own in references.secret_bindings(shoot))
    yield from (("credentialsRef", own) for own in references.credentials_bindings(shoot))


def _field(binding: Object) -> str:
    return "secretRef" if "secretRef" in binding else "credentialsRef"


def findings(project: Object, around: Around, *, now: datetime) -> Iterator[Finding]:
    using = [each for each in around.users if each.keys]
    if is_deleting(project):
        yield from _deletion(project, around, using, now)
    else:
        yield from _phase(project, around)
        yield from _staleness(project, around, using, now)
        yield from _rights(project, around.role_bindings)


# --- phase


def _phase(project: Object, around: Around) -> Iterator[Finding]:
    phase, name = text(at(project, "status", "phase")), namespace_of(project)
    described = command("describe", PROJECTS, key(project))
    if phase == "Failed":
        message = "phase Failed: the controller manager could not set it up, and retries"
        yield Finding(level=Level.PROBLEM, about="phase", text=message, remedy=f"see why: {described}")
    elif phase != "Ready":
        message = f"phase {phase or 'not set'}: the controller manager has yet to set it up"
        remedy = "if it stays so, see whether the controller manager runs"
        yield Finding(level=Level.BLOCKED, about="phase", text=message, remedy=remedy)
    else:
        yield Finding(level=Level.INFO, about="phase", text=f"Ready, namespace {name}")
    if name and around.is_namespace_known and around.namespace is None:
        message = f"its namespace {name} does not exist"
        yield Finding(level=Level.PROBLEM, about="namespace", text=message, remedy=f"see why: {described}")


# --- unused projects


def _staleness(project: Object, around: Around, using: Sequence[Users], now: datetime) -> Iterator[Finding]:
    status = mapping(project.get("status"))
    exempt = is_truthy(annotations(around.namespace or {}).get(keys.SKIP_STALE_CHECK))
    begun = time_or_none(status.get("staleSinceTimestamp"))
    ends = time_or_none(status.get("staleAutoDeleteTimestamp"))
    if begun is not None and not (using or exempt):
        message = f"stale since {when(begun, now)}: nothing in it is used"
        message += "; not to be deleted yet" if ends is None else f"; it is deleted at {when(ends, now)}"
        yield Finding(
            level=Level.NEXT if ends is None else Level.PROBLEM,
            about="stale",
            text=message,
            remedy=f"use it, or exempt it: {_exempting(project)}",
            at=begun if ends is None else ends,
        )
    elif exempt:
        message = f"never taken for stale: its namespace has the annotation {keys.SKIP_STALE_CHECK}"
        yield Finding(level=Level.INFO, about="stale", text=message)
    if using:
        yield Finding(level=Level.INFO, about="users", text=f"in use: {together(using)}", users=using)
    if (active := time_or_none(status.get("lastActivityTimestamp"))) is not None:
        message = f"its last activity was at {when(active, now)}"
        yield Finding(level=Level.INFO, about="activity", text=message, at=active)


def _exempting(project: Object) -> str:
    return command("annotate", NAMESPACES, Key("", namespace_of(project)), f"{keys.SKIP_STALE_CHECK}=true")


# --- deletion


def _deletion(project: Object, around: Around, using: Sequence[Users], now: datetime) -> Iterator[Finding]:
    begun, present = deletion_begun(project), finalizers(project)
    requested = "" if begun is None else f", requested at {when(begun, now)},"
    shoots = [each for each in using if each.resource == SHOOTS]
    for each in shoots:
        remedy = f"delete them; begin with: {about_it(SHOOTS, each.keys[0])}"
        message = f"the deletion{requested} waits for {each}"
        yield Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy, at=begun, users=(each,))
    if not shoots and keys.GARDENER_FINALIZER in present:
        yield from _release(around.namespace, requested, begun)
    names = (name for name in present if name != keys.GARDENER_FINALIZER)
    yield from other_finalizers(PROJECTS, project, names)


def _release(namespace: Object | None, requested: str, begun: datetime | None) -> Iterator[Finding]:
    if namespace is None or not is_deleting(namespace):
        message = f"the deletion{requested} waits for the controller manager"
        remedy = "if it stays so, see whether the controller manager runs"
        yield Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy, at=begun)
        return
    name = key(namespace).name
    held = [
        one_line(each.get("message"))
        for each in mappings(at(namespace, "status", "conditions"))
        if each.get("status") == "True" and text(each.get("type")).startswith(_HINDERED)
    ]
    message = f"the deletion{requested} waits for the namespace {name}"
    if held:
        message += f": {'; '.join(held)}"
    remedy = "remove what is left in it" if held else f"see: {command('describe', NAMESPACES, Key('', name))}"
    yield Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy, at=begun)


# --- rights in its namespace that do not come from its members


_MOST_LISTED = 20
_MOST_SUBJECTS = 5


def _rights(project: Object, bindings: Iterable[Object]) -> Iterator[Finding]:
    """Report rights of others than members. Members may bind roles in the namespace to anyone, as far as their own
    rights go, and read tokens of ServiceAccounts. Both stay when their membership ends.

    Args: bindings: all RoleBindings of its namespace.
    """
    known = {identity(each) for each in (*members(spec(project)), mapping(spec(project).get("owner")))}
    own = sorted((each for each in bindings if not _is_of(project, each)), key=key)
    with_strangers = [(each, strangers) for each in own if (strangers := _strangers(each, known))]
    for binding, strangers in with_strangers[:_MOST_LISTED]:
        yield _binding(binding, strangers)
    if more := len(with_strangers[_MOST_LISTED:]):
        message = f"{more} more RoleBindings have subjects that are not members"
        yield Finding(level=Level.PROBLEM, about="rights", text=message)
    accounts = {_account(each) for each in known} | {_account(each) for of in own for each in _subjects(of)}
    here = sorted(each for each in accounts if each.namespace == text(spec(project).get("namespace")) and each.name)
    if here:
        message = (
            f"{Users(SERVICE_ACCOUNTS, here)}: owners of their tokens keep these rights after their membership ends"
        )
        remedy = f"delete unneeded ones, such as: {command('delete', SERVICE_ACCOUNTS, here[0])}"
        yield Finding(level=Level.INFO, about="accounts", text=message, remedy=remedy)


def _binding(binding: Object, strangers: list[Identity]) -> Finding:
    role = mapping(binding.get("roleRef"))
    who = ", ".join(_named(each) for each in strangers[:_MOST_SUBJECTS])
    if more := len(strangers[_MOST_SUBJECTS:]):
        who += f" and {more} more"
    is_human = any(kind != SERVICE_ACCOUNTS.kind for kind, *_ in strangers)
    return Finding(
        level=Level.PROBLEM if is_human else Level.INFO,
        about="rights",
        text=f"RoleBinding {key(binding)} gives {text(role.get('kind'))} {text(role.get('name'))} to {who}, not "
        "members",
        remedy=f"make them members, or: {command('delete', ROLE_BINDINGS, key(binding))}",
    )


def _is_of(project: Object, binding: Object) -> bool:
    return (controller_of(binding) or {}).get("uid") == uid(project)


def _subjects(binding: Object) -> list[Identity]:
    return list(dict.fromkeys(map(identity, mappings(binding.get("subjects")))))


def _strangers(binding: Object, known: set[Identity]) -> list[Identity]:
    return [each for each in _subjects(binding) if each not in known]


def _account(who: Identity) -> Key:
    """Key of a ServiceAccount; an empty one for others."""
    kind, namespace, name = who
    return Key(namespace, name) if kind == SERVICE_ACCOUNTS.kind else Key("", "")


def _named(who: Identity) -> str:
    kind, namespace, name = who
    return f"{kind} {Key(namespace, name)}"
