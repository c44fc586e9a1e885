"""A ManagedSeedSet, its revisions, and its progress."""

from collections.abc import Sequence

import click

from gardener.api.garden import MANAGED_SEED_SETS
from gardener.garden.managed_seed_sets import Pending, owned
from gardener.garden.shoots import is_current
from kube.clock import format_time
from kube.objects import Key, Object, condition, integer, key, mapping, spec, text
from kube.paths import mapping_at
from kube.resources import CONTROLLER_REVISIONS
from kube.runtime.client import Selection
from kubectl.errors import UserError
from kubectl.reader import Reader
from kubectl.session import Session


def _complete_name(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from kubectl.completion import names_of

    return names_of(MANAGED_SEED_SETS, ctx, incomplete)


name = click.argument("name", help="Name of the ManagedSeedSet.", shell_complete=_complete_name)


async def seed_set_of(session: Session, name: str) -> Object:
    """Read a ManagedSeedSet. Raises UserError: there is none."""
    return await Reader(session.source.client).demand(MANAGED_SEED_SETS, Key(session.namespace, name))


async def revisions_of(session: Session, seed_set: Object) -> list[Object]:
    """Revisions of a set, the oldest first. Raises UserError: none are kept."""
    pages = session.source.client.pages(CONTROLLER_REVISIONS, Selection(key(seed_set).namespace))
    found = owned(seed_set, [each async for page in pages for each in page])
    if not found:
        raise UserError(
            f"no revision of ManagedSeedSet {key(seed_set)} is kept",
            hint="the controller manager keeps them if spec.updateStrategy.rollingUpdate is there, if empty",
        )
    return found


def number_of(revision: Object) -> int:
    return integer(revision.get("revision"))


def of_number(revisions: Sequence[Object], number: int) -> Object:
    """Revision of this number. Raises UserError: it is not among them."""
    for revision in revisions:
        if number_of(revision) == number:
            return revision
    known = ", ".join(str(number_of(each)) for each in revisions)
    raise UserError(f"there is no revision {number}", hint=f"there are: {known}")


def progress_of(seed_set: Object) -> tuple[bool, str]:
    """Whether all replicas are ready and updated, and a description of the progress."""
    status, wanted = mapping(seed_set.get("status")), integer(spec(seed_set).get("replicas"))
    if not is_current(seed_set):
        return False, "the controller manager has not seen the last change yet"
    there, ready = (integer(status.get(field)) for field in ("replicas", "readyReplicas"))
    counts = f"{there} of {wanted} replicas are there, {ready} are ready"
    if mapping_at(spec(seed_set), "updateStrategy").get("rollingUpdate") is not None:
        counts += f", {integer(status.get('updatedReplicas'))} are updated"
    if (pending := Pending.of(status)) is not None:
        return False, f"{counts}; replica {pending.name}: {pending.reason} since {format_time(pending.since)}"
    reported = condition(seed_set, "Progressing")
    if reported is not None and reported.get("reason") != "Idle":
        return False, f"{counts}; {text(reported.get('reason'))}: {text(reported.get('message'))}"
    return there == ready == wanted, counts
