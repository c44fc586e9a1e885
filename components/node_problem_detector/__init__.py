"""Detector of problems on nodes, which reports them in their conditions."""

from components.component import ON_NODES, Component
from components.inputs import Inputs
from components.manifest import manifest
from kube.objects import Object

NAME = "node-problem-detector"


def _contents(inputs: Inputs) -> list[Object]:
    return manifest(__file__, image=inputs.image(NAME), host=inputs.host_in_pods)


COMPONENT = Component(
    name=NAME, title=f"{NAME} system component", contents=_contents, after=[*ON_NODES, "systems-ready"]
)
