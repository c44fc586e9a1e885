"""Carries out steps, all but the creation of a Shoot, of which the status has to know before."""

from agent.controller_manager.managed_seed_set.garden import Garden
from agent.controller_manager.managed_seed_set.history import kept_templates, templates_to_make
from agent.controller_manager.managed_seed_set.rules.history import History
from agent.controller_manager.managed_seed_set.rules.merging import updated
from agent.controller_manager.managed_seed_set.rules.objects import managed_seed_of, shoot_of
from agent.controller_manager.managed_seed_set.rules.steps import Action, Step
from gardener.garden.managed_seed_set.replicas import REVISION_LABEL, Replica
from gardener.garden.resources import MANAGED_SEEDS, SHOOTS
from kube.controller import ReconcileError
from kube.errors import Forbidden, Invalid, refusal_of
from kube.objects import Object


class UpdateRejected(ReconcileError):
    """The API server refuses what an object would be by the new templates."""


async def carry_out(garden: Garden, seed_set: Object, replica: Replica, step: Step, history: History | None) -> None:
    """Raises: KubeError; ReconcileError."""
    match step.action:
        case Action.RETRY_SHOOT:
            await garden.retry(replica.shoot)
        case Action.CREATE_MANAGED_SEED:
            templates, revision = templates_to_make(seed_set, history, replica.revisions[0])
            await garden.create_managed_seed(managed_seed_of(seed_set, step.name, templates, revision))
        case Action.UPDATE_SHOOT | Action.UPDATE_MANAGED_SEED if history is not None:
            await _update(garden, seed_set, replica, step, history)
        case Action.DELETE_MANAGED_SEED if replica.managed_seed is not None:
            await garden.delete_managed_seed(replica.managed_seed)
        case Action.DELETE_SHOOT:
            await garden.delete_shoot(replica.shoot)


async def _update(garden: Garden, seed_set: Object, replica: Replica, step: Step, history: History) -> None:
    """Raises UpdateRejected."""
    is_shoot = step.action is Action.UPDATE_SHOOT or replica.managed_seed is None
    live = replica.shoot if is_shoot or replica.managed_seed is None else replica.managed_seed
    make = shoot_of if is_shoot else managed_seed_of
    templates, revision = templates_to_make(seed_set, history, history.update if is_shoot else replica.revisions[0])
    before = kept_templates(history, replica.revisions[0 if is_shoot else 1])
    wanted = updated(
        live,
        None if before is None else make(seed_set, step.name, before),
        make(seed_set, step.name, templates),
        own_labels={REVISION_LABEL: revision},
    )
    try:
        await garden.replace(SHOOTS if is_shoot else MANAGED_SEEDS, wanted)
    except (Invalid, Forbidden) as error:
        raise UpdateRejected(f"{step.message} was refused: {refusal_of(error)}") from error
