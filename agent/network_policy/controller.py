"""The controller `networkpolicy`: NetworkPolicies for the Services of the target cluster.

A key is a Service. It is looked at when its ports, selector or annotations change, when one of its policies is
touched, and when namespaces, Ingresses, gateways or clients come and go that concern it; see `world`.
"""

import msgspec

from agent.context import Context
from agent.late_kinds import LateKinds
from agent.network_policy import keys
from agent.network_policy.facts import Existing
from agent.network_policy.istio import Gateways
from agent.network_policy.policies import Rules
from agent.network_policy.reconcile import Reconciler
from agent.network_policy.world import World
from config.schema_controllers import LabelSelector, NetworkPolicy
from kube.cache import Change
from kube.controller import Controller
from kube.objects import Key, Object
from kube.queue import CHANGE, RESYNC
from kube.resources import SERVICES


class NetworkPolicyLoop:
    """See `agent.context.ControlLoop`."""

    def __init__(self, context: Context) -> None:
        settings = context.config.controllers.network_policy
        target, rules = context.target, rules_of(settings)
        self._world = World(target.caches, rules, tell=self._tell)
        self._gateways = Gateways(target.caches, tell=lambda service: self._tell(service, False))
        istio = keys.VIRTUAL_SERVICES, keys.GATEWAYS
        self._istio = LateKinds(target.discovery, istio, begin=self._gateways.begin)
        self._reconciler = Reconciler(
            client=target.client,
            world=self._world,
            gateways=self._gateways,
            rules=rules,
            recorder=context.target_recorder,
        )
        self.controller = Controller(
            keys.NAME, self._reconciler.reconcile, kind=SERVICES, concurrency=settings.concurrent_syncs
        )
        self._unsubscribe = self._world.policies.subscribe(self._policy_changed)

    async def start(self) -> None:
        await self._istio.look()
        await self._world.start()

    async def close(self) -> None:
        self._unsubscribe()
        await self._istio.close()
        await self._gateways.close()
        await self._world.close()

    def kinds_changed(self, group: str) -> None:
        """CustomResourceDefinitions of the group came, changed or went in the target cluster."""
        self._istio.kinds_changed(group)

    def _tell(self, service: Key, is_routine: bool) -> None:
        self.controller.queue.add(service, RESYNC if is_routine else CHANGE)

    def _policy_changed(self, change: Change[Existing]) -> None:
        waiting = self._reconciler.policy_changed(change.key, change.new)
        if waiting is not None:
            self._tell(waiting, False)


def rules_of(settings: NetworkPolicy) -> Rules:
    controller = settings.ingress_controller_selector
    return Rules(
        namespace_selectors=tuple(_selector(each) for each in settings.namespace_selectors),
        ingress_controller=(controller.namespace, _selector(controller.pod_selector)) if controller else None,
        requires_pods=settings.require_matching_pods,
        names_everybody=settings.from_world_peers == "explicit",
    )


def _selector(selector: LabelSelector) -> Object:
    """As it is written in JSON, without what is empty."""
    expressions = [
        {name: value for name, value in msgspec.to_builtins(each).items() if value}
        for each in selector.match_expressions
    ]
    fields = {"matchLabels": dict(selector.match_labels), "matchExpressions": expressions}
    return {name: value for name, value in fields.items() if value}
