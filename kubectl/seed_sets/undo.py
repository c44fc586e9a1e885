"""`kubectl mss undo`: former templates become those of the set, in one write. The controller manager finds their
revision, and updates the replicas as after any change.
"""

import click

from gardener.api.garden import MANAGED_SEED_SETS
from gardener.garden.managed_seed_sets import CHANGE_CAUSE, templates_in, templates_of
from kube.objects import Object, annotations, key, metadata, spec
from kubectl import output
from kubectl.errors import UserError
from kubectl.seed_sets import reading
from kubectl.session import Session, on_cluster


@click.command
@reading.name
@click.option(
    "--to-revision",
    "to",
    type=click.IntRange(min=1),
    metavar="N",
    help="Revision to roll back to; default: the one before the newest.",
)
@on_cluster(target=False, garden=True)
async def command(session: Session, *, name: str, to: int | None) -> None:
    """Rolls back to a revision of kubectl mss history. Writes only the templates and the cause of the change, which is
    the cause of that revision.
    """
    seed_set = await reading.seed_set_of(session, name)
    revisions = await reading.revisions_of(session, seed_set)
    if to is None and len(revisions) == 1:
        raise UserError(f"there is no revision before the newest, {reading.number_of(revisions[0])}")
    revision = revisions[-2] if to is None else reading.of_number(revisions, to)
    result = f"ManagedSeedSet {key(seed_set)} has the templates of revision {reading.number_of(revision)}"
    if templates_of(seed_set) == templates_in(revision):
        output.done(f"{result} already")
        return
    await session.source.client.replace(MANAGED_SEED_SETS, with_templates(seed_set, revision))
    output.done(f"{result} again; kubectl mss status {name} -n {session.namespace} --watch waits for the replicas")


def with_templates(seed_set: Object, revision: Object) -> Object:
    notes = {name: text for name, text in annotations(seed_set).items() if name != CHANGE_CAUSE}
    if (cause := annotations(revision).get(CHANGE_CAUSE)) is not None:
        notes[CHANGE_CAUSE] = cause
    return {
        **seed_set,
        "metadata": {**metadata(seed_set), "annotations": notes},
        "spec": {**spec(seed_set), **templates_in(revision)},
    }
