"""`python -m tests.rights_table`: writes docs/rights.md from the tables in `gardener.rights`."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gardener.rights import bootstrapper, everybody, gardenlet, project
from gardener.rights.metadata import Limits
from gardener.rights.model import CHANGE, READ, Right, Table

FILE = Path(__file__).parents[1] / "docs/rights.md"

_ORDER = ("read", "get", "list", "watch", "create", "change", "update", "patch", "delete", "deletecollection")
_HEAD = """# Rights in the garden

Written by `python -m tests.rights_table` from the tables in `gardener/rights`. The [authorizer](authorizer.md), its admission and its
webhook rules derive from the first one; it denies gardenlets what is in neither the first nor the third.

*read*: get, list, watch. *change*: update, patch.
"""


def document() -> str:
    return "".join([_HEAD, *(_section(*section) for section in _sections())])


def _section(title: str, text: str, table: Table) -> str:
    return f"\n## {title}\n\n{text}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in _rows(table))


def _rows(table: Table) -> Iterator[Sequence[str]]:
    """Rights that differ only in their kind share a row."""
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for right in table.rights:
        kinds.setdefault((_verbs(right), right.objects.title, _changes(right.limits)), []).append(_kind(right))
    has_limits = any(changes for *_, changes in kinds)
    width = 4 if has_limits else 3
    yield ("Kinds", "Verbs", "Objects", "What a change may contain")[:width]
    yield ("---",) * width
    for (verbs, objects, changes), found in kinds.items():
        yield (", ".join(dict.fromkeys(found)), verbs, objects, changes or ("all" if "change" in verbs else "-"))[
            :width
        ]


def _kind(right: Right) -> str:
    return f"{right.resource.plural}/{right.subresource}" if right.subresource else right.resource.plural


def _verbs(right: Right) -> str:
    verbs = set(right.verbs)
    for name, some in (("read", READ), ("change", CHANGE)):
        if some <= verbs:
            verbs = verbs - some | {name}
    return ", ".join(sorted(verbs, key=lambda each: (_ORDER.index(each) if each in _ORDER else len(_ORDER), each)))


def _changes(limits: Limits | None) -> str:
    """Empty: everything."""
    if limits is None:
        return ""
    ways = [way for way, some in (("add", limits.adds), ("remove", limits.removes)) if some]
    parts = [f"{' or '.join(ways)} finalizer {_names(sorted(limits.adds | limits.removes))}"]
    if limits.annotations:
        parts.append(f"annotations {_names(sorted(limits.annotations))}")
    if limits.content:
        parts.append("all besides metadata")
    return "; ".join(parts)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)


_GARDENLET = """The user `gardener.cloud:system:seed:<seed>` in the group `gardener.cloud:system:seeds`; *its*: of its Seed. Lists need a selector
for the Seed, unless the objects are *all*."""
_EVERYBODY = f"""The group `system:authenticated`, which contains gardenlets and extensions. In addition, `get`
{_names(everybody.PATHS)} and what is below.

Extensions, ServiceAccounts in `seed-<seed>`, have no other rights in the garden, except by ClusterRoles that
[operators select for them](seeds.md), which are not limited to a Seed. The authorizer leaves them to RBAC."""
_OWNER = "The user in `spec.owner`, in addition to the rights by `spec.members`."
_NO_ROLE = """The creator of a Shoot has no rights by that. Users who may create its `adminkubeconfig` have all rights in its cluster, and none in
the seed or garden, which do not trust its CA: see [owners of Shoots](threats.md#owners-of-shoots)."""


def _sections() -> Iterator[tuple[str, str, Table]]:
    yield "Gardenlet", _GARDENLET, gardenlet.TABLE
    yield "Gardenlet without a certificate", "By a bootstrap token or bootstrap ServiceAccount.", bootstrapper.TABLE
    yield "All users", f"{_EVERYBODY}\n\n{_NO_ROLE}", everybody.TABLE
    yield "Owner of a Project", _OWNER, project.OWNER
    for role, table in project.ROLES.items():
        yield f"Member of a Project: {role}", f"The role `{role}` in `spec.members`.", table


if __name__ == "__main__":
    FILE.write_text(document())
