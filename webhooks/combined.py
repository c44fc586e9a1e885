"""All changes of pods in one call: `/webhooks/pods`, and `/webhooks/pods/target` for a target instance.

A pod passes up to eight mutating webhooks one after another, and each round trip costs the API server far more than the
change. This handler runs the same chain at once, on one parsed object, and returns one patch. Each link has its own
selectors, failure policy and timeout, from the descriptor that separate configurations are generated from, and sees the
pod as changed by the links before it.

The API server has already checked the conditions that all links share; see `webhooks.configurations.registrations`.

A refusal counts regardless of the failure policy, as between API server and webhook. A link that takes too long or
breaks fails: with the policy `Ignore` the pod is as if the link had not been called. For this the chain restarts
without it, which costs nothing as long as nothing fails.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from config.resource_manager.schema import ResourceManagerConfiguration
from kube.objects import labels
from webhooks.admission import Allowed, Answer, Changed, Errored, Handler, Mutation, Request
from webhooks.configurations.registrations import COMBINED_PATHS, mutating, pods
from webhooks.descriptor import MutatingWebhook
from webhooks.generic import NOTHING_TO_DECODE, answer_to, copied
from webhooks.registry import enabled
from webhooks.rules.registration import EVERYTHING, Instance, Mode, Registration, Selector
from webhooks.rules.shapes import METADATA, pod
from webhooks.state import SharedListers

NAME = "pods"
PATHS = COMBINED_PATHS

log = structlog.get_logger(f"webhook.{NAME}")

LabelsOfNamespace = Callable[[str], Awaitable[Mapping[str, str]]]

_SHAPE = pod({"metadata": METADATA})


@dataclass(frozen=True, slots=True)
class Link:
    """One of the webhooks, with the conditions under which it is called."""

    name: str
    mutation: Mutation
    namespaces: Selector
    objects: Selector
    may_fail: bool
    timeout: float


def links(entries: Sequence[Registration], combined: Registration, mutations: Mapping[str, Mutation]) -> list[Link]:
    """Chain of these entries, without conditions that the API server has checked for the combined one."""
    return [
        Link(
            name=entry.name,
            mutation=mutations[entry.webhook],
            namespaces=entry.namespaces - combined.namespaces,
            objects=entry.objects - combined.objects,
            may_fail=entry.failure_policy == "Ignore",
            timeout=entry.timeout_seconds,
        )
        for entry in entries
    ]


def chain(of: Sequence[Link], labels_of_namespace: LabelsOfNamespace) -> Handler:
    needs_namespace = any(link.namespaces != EVERYTHING for link in of)

    async def handle(request: Request) -> Answer:
        if request.operation == "DELETE":
            return Allowed()
        if request.object is None:
            return Errored(400, NOTHING_TO_DECODE)
        try:
            _SHAPE.demand(request.object)
            of_namespace = await labels_of_namespace(request.namespace) if needs_namespace else {}
        except Exception as error:  # noqa: BLE001 - every error is answered
            return answer_to(error)
        remaining = [link for link in of if link.namespaces.matches(of_namespace)]
        while True:
            answer = await _go_through(remaining, request)
            if not isinstance(answer, _Failed):
                return answer
            log.error("Left out", link=answer.link.name, error=answer.error, namespace=request.namespace)
            remaining.remove(answer.link)

    return handle


@dataclass(frozen=True, slots=True)
class _Failed:
    """A link with the failure policy `Ignore` failed."""

    link: Link
    error: Exception


async def _go_through(of: Sequence[Link], request: Request) -> Answer | _Failed:
    after, now = copied(request.object), asyncio.get_running_loop().time
    link: Link | None = None
    limit = asyncio.timeout(None)
    try:
        async with limit:
            for link in of:
                if link.objects.matches(labels(after)):
                    limit.reschedule(now() + link.timeout)
                    await link.mutation(request, after)
    except Exception as error:  # noqa: BLE001 - every error is answered
        assert link is not None
        if isinstance(error, TimeoutError) and limit.expired():
            late = Errored(500, f'failed calling webhook "{link.name}": no answer within {link.timeout:g}s')
            return _Failed(link, error) if link.may_fail else late
        return _answer_to(error, link)
    return Changed(request.object, after)


def _answer_to(error: Exception, link: Link) -> Answer | _Failed:
    try:
        return answer_to(error)
    except Exception as mistake:
        if link.may_fail:
            return _Failed(link, mistake)
        raise


# --- of the server


def is_enabled(config: ResourceManagerConfiguration) -> bool:
    return bool(pods(config.webhooks, Instance(mode=Mode.RUNTIME)))


def handler(config: ResourceManagerConfiguration, mode: Mode, state: SharedListers) -> Handler:
    """Return the handler of all enabled webhooks of pods, as an instance of that mode would register them."""
    instance = Instance(mode=mode)
    combined = next(entry for entry in mutating(config.webhooks, instance, combined=True) if entry.path == PATHS[mode])
    of = links(pods(config.webhooks, instance), combined, mutations(config, state))
    return chain(of, state.labels_of_namespace)


def mutations(config: ResourceManagerConfiguration, state: SharedListers) -> dict[str, Mutation]:
    return {
        webhook.name: webhook.mutation(webhook.settings_in(config.webhooks), state)
        for webhook in enabled(config.webhooks)
        if isinstance(webhook, MutatingWebhook) and webhook.is_for_pods
    }
