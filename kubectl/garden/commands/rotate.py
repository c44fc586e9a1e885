"""`kubectl gardener rotate`: credentials of Shoots, in one step, or in two between which users exchange theirs."""

from collections.abc import Sequence

import click

from gardener.garden.rotations import ONE_STEP, ROTATES, TWO_STEPS
from kubectl.errors import UserError
from kubectl.garden import obstacles
from kubectl.garden.changing import Change, changing_shoots, operation
from kubectl.session import Session

_PREFIX = "rotate-"
_IN_ONE_STEP = [name.removeprefix(_PREFIX) for name in ONE_STEP]
_POOLS = "workers"


@click.command
@click.argument("what", metavar="WHAT", type=click.Choice([*ROTATES, *_IN_ONE_STEP, _POOLS]))
@click.option("--complete", is_flag=True, help="Remove the old credentials; users have replaced theirs.")
@click.option("--keep-nodes", is_flag=True, help="Do not replace nodes at the start; see --pool.")
@click.option(
    "--pool", "pools", multiple=True, metavar="NAME", help="Worker pool to replace after --keep-nodes; repeatable."
)
@changing_shoots(confirms=True)
async def command(_: Session, *, what: str, complete: bool, keep_nodes: bool, pools: Sequence[str]) -> Change:
    """Rotates WHAT: credentials (all), ca, serviceaccount-key or etcd-encryption-key in two steps, of which the first
    creates new credentials, and --complete removes the old ones; kubeconfig-credentials, ssh-keypair or
    observability-credentials in one step. With workers, nodes of worker pools are replaced.
    """
    name = operation_of(what, complete=complete, keep_nodes=keep_nodes, pools=pools)
    return Change(
        text=f"requested {name}",
        obstacle=obstacles.rotation(name),
        write=operation(name),
        question=_question(what, complete=complete, keep_nodes=keep_nodes),
    )


def operation_of(what: str, *, complete: bool, keep_nodes: bool, pools: Sequence[str]) -> str:
    """Operation that the flags request. Raises UserError: they do not fit."""
    if bool(pools) != (what == _POOLS) or (what == _POOLS and (complete or keep_nodes)):
        raise UserError("WHAT is workers if and only if --pool is set", hint="such as: rotate workers NAME --pool POOL")
    if pools:
        return f"rotate-rollout-workers={','.join(pools)}"
    if complete and keep_nodes:
        raise UserError("--keep-nodes is for the start of a rotation", hint="remove it, or --complete")
    step = "-complete" if complete else "-start-without-workers-rollout" if keep_nodes else "-start"
    name = f"{_PREFIX}{what}{step if what in ROTATES else ''}"
    if (complete or keep_nodes) and name not in TWO_STEPS:
        raise UserError(
            f"--{'complete' if complete else 'keep-nodes'} does not apply to {what}", hint="remove this flag"
        )
    return name


def _question(what: str, *, complete: bool, keep_nodes: bool) -> str:
    if complete:
        return f"This ends the validity of the old {what}, for"
    if what in _IN_ONE_STEP:
        return f"This replaces {what}, for"
    effect = "" if keep_nodes or what == "etcd-encryption-key" else ", and replaces nodes"
    return f"This starts a rotation of {what}, which can't be canceled{effect}, for"
