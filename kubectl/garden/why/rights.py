"""Findings about rights in the namespace of a Project that do not come from its members.

Members may bind roles there to anybody, as far as their own rights go, and read tokens of ServiceAccounts. Both stay
when their membership ends.
"""

from collections.abc import Iterable, Iterator

from gardener.garden.members import Identity, identity, members
from kube.objects import Key, Object, controller_of, key, mapping, mappings, spec, text, uid
from kube.resources import ROLE_BINDINGS, SERVICE_ACCOUNTS
from kubectl.garden.why.finding import Finding, Level, Users, command

_MOST_LISTED = 20
_MOST_SUBJECTS = 5


def findings(project: Object, bindings: Iterable[Object]) -> Iterator[Finding]:
    """Args: bindings: all RoleBindings of its namespace."""
    known = {identity(each) for each in (*members(spec(project)), mapping(spec(project).get("owner")))}
    own = sorted((each for each in bindings if not _is_of(project, each)), key=key)
    with_strangers = [(each, strangers) for each in own if (strangers := _strangers(each, known))]
    for binding, strangers in with_strangers[:_MOST_LISTED]:
        yield _binding(binding, strangers)
    if more := len(with_strangers[_MOST_LISTED:]):
        message = f"{more} more RoleBindings have subjects who are no members"
        yield Finding(level=Level.PROBLEM, about="rights", text=message)
    accounts = {_account(each) for each in known} | {_account(each) for of in own for each in _subjects(of)}
    here = sorted(each for each in accounts if each.namespace == text(spec(project).get("namespace")) and each.name)
    if here:
        message = f"{Users(SERVICE_ACCOUNTS, here)}: who knows a token keeps these rights when his membership ends"
        remedy = f"delete those that are not needed any more, such as: {command('delete', SERVICE_ACCOUNTS, here[0])}"
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
        text=f"RoleBinding {key(binding)} gives {text(role.get('kind'))} {text(role.get('name'))} to {who}: no members",
        remedy=f"make them members, or: {command('delete', ROLE_BINDINGS, key(binding))}",
    )


def _is_of(project: Object, binding: Object) -> bool:
    return (controller_of(binding) or {}).get("uid") == uid(project)


def _subjects(binding: Object) -> list[Identity]:
    return list(dict.fromkeys(map(identity, mappings(binding.get("subjects")))))


def _strangers(binding: Object, known: set[Identity]) -> list[Identity]:
    return [each for each in _subjects(binding) if each not in known]


def _account(who: Identity) -> Key:
    """The key of a ServiceAccount; of others an empty one."""
    kind, namespace, name = who
    return Key(namespace, name) if kind == SERVICE_ACCOUNTS.kind else Key("", "")


def _named(who: Identity) -> str:
    kind, namespace, name = who
    return f"{kind} {Key(namespace, name)}"
