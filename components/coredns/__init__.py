"""The DNS server in a Shoot with workers."""

from components.component import ON_NODES, Component, Read
from components.inputs import Inputs
from components.manifest import manifest, of_kind
from components.namespaces import KUBE_SYSTEM
from components.results import INFRASTRUCTURE
from kube.objects import Key, Object, text
from kube.paths import at
from kube.resources import DEPLOYMENTS

NAME = "coredns"
_RESTARTED = "gardener.cloud/restarted-at"
"""Annotation of its pods: time of the last restart without a change."""
_RESTART = "restartCoreAddons"
"""Task of a Shoot that requests a restart."""
_ANNOTATIONS = ("spec", "template", "metadata", "annotations")


def _contents(inputs: Inputs) -> list[Object]:
    networks = inputs.networks
    callers: list[Object] = [{"namespaceSelector": {}, "podSelector": {}}]
    callers += [{"ipBlock": {"cidr": each}} for each in (networks.nodes, networks.pods) if each]
    found = manifest(
        __file__, image=inputs.image(NAME), host=inputs.host_in_pods, address=inputs.dns_address, callers=callers
    )
    if restarted := inputs.now if _RESTART in inputs.tasks else _last_restart(inputs):
        of_kind(found, DEPLOYMENTS.kind)["spec"]["template"]["metadata"]["annotations"] = {_RESTARTED: restarted}
    return found


def _last_restart(inputs: Inputs) -> str:
    return "".join(text(at(each, *_ANNOTATIONS, _RESTARTED)) for each in inputs.live[NAME])


COMPONENT = Component(
    name=NAME,
    title="CoreDNS system component",
    contents=_contents,
    reads={NAME: Read(DEPLOYMENTS, Key(KUBE_SYSTEM, NAME))},
    results=[INFRASTRUCTURE],
    task="dns",
    after=[*ON_NODES, "systems-ready"],
    carries_out=_RESTART,
)
