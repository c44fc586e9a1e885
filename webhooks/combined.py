"""All changes of pods in one call: `/webhooks/pods`, and `/webhooks/pods/target` for a target instance.

A pod passes up to eight mutating webhooks one after another, and each round trip costs the API server far more than the
change. Here the chain that the API server would go through is gone through at once, on one parsed object, and makes one
patch. Each link has its own selectors, failure policy and time-out, from the table that separate configurations are
generated from, and sees the pod as the links before it left it.

What all links demand, the API server has checked already; see `webhooks.configurations.registrations`.

A refusal is a refusal, whatever the failure policy, as it is between API server and webhook. A link that takes too long
or breaks fails: with the policy `Ignore` the pod is as if it had not been asked. To that end the chain starts over
without it, which costs nothing as long as nothing fails.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from config.schema import ResourceManagerConfiguration
from kube.objects import labels
from webhooks.admission import Allowed, Answer, Changed, Errored, Handler, Mutation, Request
from webhooks.configurations.entries import EVERYTHING, Instance, Mode, Registration, Selector
from webhooks.configurations.registrations import COMBINED_PATHS, mutating, pods
from webhooks.facts import Facts
from webhooks.generic import NOTHING_TO_DECODE, answer_to, copied
from webhooks.handlers import (
    kubernetes_service_host,
    pod_kube_apiserver_load_balancing,
    pod_scheduler_name,
    pod_topology_spread_constraints,
    projected_token_mount,
    seccomp_profile,
    system_components_config,
)
from webhooks.shapes import Fields, Metadata, pod

NAME = "pods"
PATHS = COMBINED_PATHS

log = structlog.get_logger(f"webhook.{NAME}")

LabelsOfNamespace = Callable[[str], Awaitable[Mapping[str, str]]]


class _Pod(Fields):
    metadata: Metadata | None = None


_SHAPE = pod(_Pod)


@dataclass(frozen=True, slots=True)
class Link:
    """One of the webhooks, and when it is asked."""

    name: str
    mutation: Mutation
    namespaces: Selector
    objects: Selector
    may_fail: bool
    timeout: float


def links(entries: Sequence[Registration], combined: Registration, mutations: Mapping[str, Mutation]) -> list[Link]:
    """The chain for these entries, without what the API server has checked for the combined one."""
    return [
        Link(
            name=entry.name,
            mutation=mutations[entry.handler],
            namespaces=entry.namespaces - combined.namespaces,
            objects=entry.objects - combined.objects,
            may_fail=entry.failure_policy == "Ignore",
            timeout=entry.timeout_seconds,
        )
        for entry in entries
    ]


def chain(of: Sequence[Link], labels_of_namespace: LabelsOfNamespace) -> Handler:
    """The handler that goes through the links."""
    needs_namespace = any(link.namespaces != EVERYTHING for link in of)

    async def handle(request: Request) -> Answer:
        if request.operation == "DELETE":
            return Allowed()
        if request.object is None:
            return Errored(400, NOTHING_TO_DECODE)
        try:
            _SHAPE.demand(request.object)
            of_namespace = await labels_of_namespace(request.namespace) if needs_namespace else {}
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered
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
    """A link failed that pods can do without."""

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
    except Exception as error:  # noqa: BLE001 - whatever it is, it is answered
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
    """Whether there is a webhook of pods."""
    return bool(pods(config.webhooks, Instance(mode=Mode.RUNTIME)))


def handler(config: ResourceManagerConfiguration, mode: Mode, facts: Facts) -> Handler:
    """The handler for all enabled webhooks of pods, as an instance of that mode would register them."""
    instance = Instance(mode=mode)
    combined = next(entry for entry in mutating(config.webhooks, instance, combined=True) if entry.path == PATHS[mode])
    of = links(pods(config.webhooks, instance), combined, mutations(config, facts))
    return chain(of, facts.labels_of_namespace)


def mutations(config: ResourceManagerConfiguration, facts: Facts) -> dict[str, Mutation]:
    """The enabled webhooks of pods, by name."""
    webhooks = config.webhooks
    candidates: list[tuple[Any, Any]] = [
        (projected_token_mount, webhooks.projected_token_mount),
        (pod_scheduler_name, webhooks.pod_scheduler_name),
        (seccomp_profile, webhooks.seccomp_profile),
        (kubernetes_service_host, webhooks.kubernetes_service_host),
        (pod_kube_apiserver_load_balancing, webhooks.pod_kube_apiserver_load_balancing),
        (system_components_config, webhooks.system_components_config),
        (pod_topology_spread_constraints, webhooks.pod_topology_spread_constraints),
    ]
    return {module.NAME: module.mutation(settings, facts) for module, settings in candidates if settings.enabled}
