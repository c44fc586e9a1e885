"""`kubectl mr rollback`: write the contents of a revision back into the Secrets of the ManagedResource.

The agent applies that like any change, and keeps it as a new revision. Several Secrets can't be written at once: so
that nothing in between is applied, the ManagedResource is suspended meanwhile.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import click

from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_APPLIED
from gardener.managed_resource.conditions import IGNORED
from gardener.managed_resource.history import CHANGE_CAUSE
from gardener.managed_resource.references import secret_names
from gardener.overview import hints
from gardener.responsibility import is_ignored
from kube.errors import KubeError
from kube.objects import Key, Object, annotations, condition, is_deleting, key, labels, mappings, metadata
from kube.resources import SECRETS
from kube.runtime.polling import wait_while
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.mr import managed_resources, parameters, preview
from kubectl.mr.desired import values_of
from kubectl.mr.revisions import applied_digest, digest_of, number_of, read_kept, read_revisions
from kubectl.mr.waiting import Goal, wait_for
from kubectl.options import seconds_of
from kubectl.session import Session, on_cluster
from kubectl.style import short_list

_LOOK_SECONDS, _SUSPENDED_SECONDS = 0.2, 30.0
_RESUMED: dict[str, str | None] = {keys.IGNORE: None, keys.IGNORE_REASON: None}


class DryRun(StrEnum):
    SERVER = "server"


@click.command
@parameters.name
@click.option(
    "--to",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Number of the revision; default: the latest one with different content.",
)
@click.option("--dry-run", type=options.OneOf(DryRun), help="Only show the changes.")
@parameters.wait
@options.timeout("5m")
@on_cluster()
async def command(session: Session, *, name: str, to: int, dry_run: DryRun | None, wait: bool, timeout: str) -> int:
    """Shows the changes to the objects like kubectl mr diff with --dry-run server. Revisions are the numbers of
    kubectl mr history.

    Does not write Secrets that are immutable or managed by others: the error states the alternative.
    """
    patience = seconds_of(timeout)
    managed_resource = await managed_resources.named(session, name)
    if is_deleting(managed_resource):
        raise UserError(f"ManagedResource {key(managed_resource)} is being deleted")
    plan = await _plan(session, managed_resource, to)
    if dry_run:
        return await _preview(session, managed_resource, plan)
    if plan.problem is not None:
        raise plan.problem
    if not plan.differing:
        output.done(f"ManagedResource {key(managed_resource)} holds revision {plan.number} already")
        return 0
    await _write(session, managed_resource, plan)
    if not wait:
        return 0
    return await wait_for(session, [key(managed_resource)], Goal.READY, timeout=patience, checksum=plan.checksum)


# --- what is to be done


@dataclass(frozen=True, slots=True)
class Plan:
    number: int
    wanted: Sequence[Object]
    """Secrets with their former contents, in the order of the ManagedResource."""
    differing: Sequence[tuple[Object | None, Object]]
    """Pairs of live and wanted Secret, where they differ; None: it does not exist."""
    checksum: str
    """Checksum of their data, once applied; empty: unknown."""
    problem: UserError | None
    """Reason why they can't be written."""


async def _plan(session: Session, managed_resource: Object, to: int) -> Plan:
    own = key(managed_resource)
    revisions = await read_revisions(session, managed_resource)
    holds_newest = bool(revisions) and not to and await _holds(session, managed_resource, revisions[-1])
    revision = chosen(revisions, own, to, holds_newest=holds_newest)
    kept = {key(secret).name: secret for secret in await read_kept(session, managed_resource, revision)}
    names = list(dict.fromkeys(secret_names(managed_resource)))
    wanted = [_placed(kept[name], own.namespace) for name in (names if set(names) == set(kept) else kept)]
    found = [(await _live(session, each), each) for each in wanted]
    differing = [(live, each) for live, each in found if live is None or values_of(live) != values_of(each)]
    remedy = (
        f"kubectl mr decode {key(revision).name} -n {own.namespace} | "
        f"kubectl mr create {own.name} -n {own.namespace} --immutable --update -f -"
    )
    problem = problem_of([secret for secret, _ in differing if secret is not None], remedy)
    if set(names) != set(kept):
        problem = UserError(
            f"revision {number_of(revision)} was of the Secrets {short_list(list(kept))}, not of {short_list(names)}",
            hint=f"write the manifests into a new Secret: {remedy}",
        )
    # It depends on the order.
    checksum = digest_of(revision) if names == list(kept) else ""
    return Plan(number_of(revision), wanted, differing, checksum, problem)


async def _live(session: Session, secret: Object) -> Object | None:
    return await session.source.client.find(SECRETS, key(secret))


async def _holds(session: Session, managed_resource: Object, revision: Object) -> bool:
    """Whether its Secrets have the contents of a revision, so that a rollback has to go further back."""
    if keys.NOT_KEPT in annotations(revision):
        return digest_of(revision) == applied_digest(managed_resource)
    namespace = key(revision).namespace
    kept = [_placed(secret, namespace) for secret in await read_kept(session, managed_resource, revision)]
    if {key(secret).name for secret in kept} != set(secret_names(managed_resource)):
        return False
    found = [(await _live(session, each), each) for each in kept]
    return all(live is not None and values_of(live) == values_of(each) for live, each in found)


def _placed(secret: Object, namespace: str) -> Object:
    return {**secret, "metadata": {**metadata(secret), "namespace": namespace}}


def chosen(revisions: Sequence[Object], own: Key, to: int, *, holds_newest: bool) -> Object:
    """Revision of this number; if 0, the last one whose content differs from the Secrets.

    Raises UserError: there is none.
    """
    if not revisions:
        raise UserError(
            f"no applied version of ManagedResource {own} is kept", hint=f"{hints.command('history', own)} shows more"
        )
    known = ", ".join(str(number_of(each)) for each in revisions)
    if to:
        candidates = [each for each in revisions if number_of(each) == to]
    elif holds_newest:
        candidates = [each for each in revisions if digest_of(each) != digest_of(revisions[-1])]
    else:
        candidates = list(revisions)
    if not candidates:
        text = f"there is no revision {to}" if to else "there is no revision with another content"
        raise UserError(text, hint=f"there are: {known}")
    return candidates[-1]


def problem_of(secrets: Sequence[Object], remedy: str) -> UserError | None:
    """Reason why these Secrets must not be written by hand; None if there is none."""
    for secret in secrets:
        name = key(secret)
        if manager := manager_of(secret):
            return UserError(
                f"Secret {name} is managed by {manager}, which would write it again",
                hint="roll back where it is managed; add --dry-run server to see what that would change",
            )
        if secret.get("immutable"):
            return UserError(f"Secret {name} is immutable", hint=f"write the manifests into a new Secret: {remedy}")
    return None


async def _preview(session: Session, managed_resource: Object, plan: Plan) -> int:
    if plan.problem is not None:
        output.warn(f"it can't be done: {plan.problem.lines[0]}")
        output.begin(plan.problem.hint)
    found = await preview.differences(session, managed_resource, plan.wanted)
    output.show(preview.lines(found))
    output.waiting(preview.summary(found)) if found else output.done("no differences")
    return 1 if any(difference.what in preview.FAILURES for difference in found) else 0


# --- doing it


async def _write(session: Session, managed_resource: Object, plan: Plan) -> None:
    own, cause = key(managed_resource), f"rollback to revision {plan.number}"
    notes = annotations(managed_resource)
    suspends = len(plan.differing) > 1 and not is_ignored(managed_resource)
    # It may be suspended by an attempt that came to nothing.
    resumes = suspends or (is_ignored(managed_resource) and notes.get(keys.IGNORE_REASON) == cause)
    if suspends:
        await _suspend(session, own, cause)
    try:
        await session.source.client.annotate(MANAGED_RESOURCES, own, {CHANGE_CAUSE: cause})
        for live, wanted in plan.differing:
            await _restore(session, live, wanted)
            output.done(f"Secret {key(wanted)} has the content of revision {plan.number}")
    except KubeError as error:
        if resumes:
            again = f"{hints.command('rollback', own)} --to {plan.number}"
            hint = f"it stays suspended: {again} tries it again; else {hints.command('resume', own)}"
            raise UserError(f"not all Secrets could be written: {error}", hint=hint) from error
        raise
    if is_ignored(managed_resource) and not resumes:
        output.warn(f"it is suspended: nothing is applied until {hints.command('resume', own)}")
        return
    requested: dict[str, str | None] = {} if notes.get(keys.OPERATION) else {keys.OPERATION: keys.OPERATION_RECONCILE}
    await session.source.client.annotate(MANAGED_RESOURCES, own, requested | (_RESUMED if resumes else {}))


async def _restore(session: Session, live: Object | None, wanted: Object) -> None:
    """Write one Secret. Raises KubeError; Conflict, if the Secret was written since it was read."""
    data = {name: base64.b64encode(value).decode() for name, value in values_of(wanted).items()}
    if live is None:
        await session.source.client.create(SECRETS, {**wanted, "type": "Opaque", "stringData": {}, "data": data})
        return
    await session.source.client.replace(SECRETS, {**live, "data": data})
    if LAST_APPLIED in annotations(live):
        output.warn(f"Secret {key(live)} was written by kubectl apply: change the file, too, or it will be undone")


async def _suspend(session: Session, own: Key, reason: str) -> None:
    """Return when the agent leaves it alone. Raises UserError: none does."""
    await session.source.client.annotate(MANAGED_RESOURCES, own, {keys.IGNORE: "true", keys.IGNORE_REASON: reason})

    async def problem() -> str:
        found = await managed_resources.demand(session, own)
        is_ignored = (condition(found, RESOURCES_APPLIED) or {}).get("reason") == IGNORED
        return "" if is_ignored else f"no agent has left ManagedResource {own} alone within {_SUSPENDED_SECONDS:.0f} s"

    if left := await wait_while(problem, seconds=_SUSPENDED_SECONDS, every=_LOOK_SECONDS):
        await session.source.client.annotate(MANAGED_RESOURCES, own, _RESUMED)
        raise UserError(f"nothing was written: {left}", hint="kubectl mr check shows which agent is missing")


# --- writers that write an object again and again, so that changes by others do not last


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_MANAGED_BY = "app.kubernetes.io/managed-by"
_LABELS = {
    "kustomize.toolkit.fluxcd.io/name": "the Kustomization {} of Flux",
    "helm.toolkit.fluxcd.io/name": "the HelmRelease {} of Flux",
    "argocd.argoproj.io/instance": "the Application {} of Argo CD",
}
_ANNOTATIONS = {
    keys.ORIGIN: "the ManagedResource {}",
    "argocd.argoproj.io/tracking-id": "Argo CD ({})",
    "meta.helm.sh/release-name": "the release {} of Helm",
}


def manager_of(obj: Object) -> str:
    """Description of the manager, empty if there is none: a controller that owns it, or a tool by its marks."""
    for owner in mappings(metadata(obj).get("ownerReferences")):
        return f"{owner.get('kind')} {owner.get('name')}"
    for marks, words in ((labels(obj), _LABELS), (annotations(obj), _ANNOTATIONS)):
        for mark, text in words.items():
            if marks.get(mark):
                return text.format(marks[mark])
    return labels(obj).get(_MANAGED_BY) or ""
