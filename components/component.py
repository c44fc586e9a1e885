"""Definition of a component of a Shoot, from which its tasks and requirements are derived.

    COMPONENT = Component(name="metrics-server", title="metrics-server system component", contents=_contents, ...)

The flow has a task for each (`shoot.main.flows.components`), which reads the component's inputs, makes its objects and
writes them. Its kinds, images, Secrets and bundles are derived in `sample`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.control_plane import in_shoot
from components.inputs import Inputs
from components.parts import deployment_unready, managed_resource_unready
from components.results import Result
from components.secrets.configs import Config
from components.secrets.tables import ControlPlane
from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import Key, Object
from kube.resources import DEPLOYMENTS, Resource

ON_NODES = ("resource-manager-ready", "connection", "namespaces-ready", "scheduler")
"""Tasks that precede every component on nodes."""


@dataclass(frozen=True, slots=True)
class Read:
    """Objects in the cluster of the Shoot.

    Attributes:
        name: None: the metadata of all objects that match `selector`.
    """

    resource: Resource
    name: Key | None = None
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Readiness of the object with the name of the component.

    Attributes:
        unready: returns the reason for waiting; empty if there is none.
        seconds: time limit of waiting.
    """

    resource: Resource
    unready: Callable[[Object | None], str]
    seconds: float


OF_DEPLOYMENT = Readiness(DEPLOYMENTS, deployment_unready, seconds=180.0)
OF_MANAGED_RESOURCE = Readiness(MANAGED_RESOURCES, managed_resource_unready, seconds=120.0)


def _nothing(_: Inputs) -> Sequence[Object]:
    return ()


def _no_secrets(_: ControlPlane) -> Sequence[Config]:
    return ()


def always(_: Object) -> bool:
    return True


def _never(_: Object) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Component:
    """Attributes:
    name: in annotations of its objects, and of its ManagedResource after `shoot-core-`.
    title: in the names of its tasks, which users read: `Deploying <title>`.
    objects: makes its objects in the seed, in the order in which they are written; pure.
    contents: makes its objects in the cluster of the Shoot, likewise.
    secrets: to be generated for it.
    readiness: None if nothing waits for it.
    awaited: state that the flow waits for, as in the name of that task; empty if it does not wait.
    awaited_after: IDs of further tasks before that one.
    reads: objects in the Shoot's cluster to read first, by their name in `Inputs.live`.
    results: of earlier tasks, which its objects depend on.
    task: ID of its task; empty: its name.
    after: IDs of tasks before it.
    carries_out: requested task of the Shoot's annotation that is completed by its deployment.
    has_bundles: whether it has the bundle of an authority, or names a Secret that has one.
    is_of_workers: whether only a Shoot with workers has it.
    is_wanted: whether this Shoot requests it; otherwise it is removed.
    is_left_asleep: whether it is left unchanged while the Shoot is hibernated.
    is_put_to_sleep_later: whether it keeps running during hibernation until a separate task stops it.
    is_started_after_restoration: whether it only runs in a Shoot that has moved once a separate task, or an extension,
        starts it.
    is_required: whether a control plane without its Deployment is unhealthy.
    """

    name: str
    title: str
    objects: Callable[[Inputs], Iterable[Object]] = _nothing
    contents: Callable[[Inputs], Iterable[Object]] = _nothing
    secrets: Callable[[ControlPlane], Iterable[Config]] = _no_secrets
    readiness: Readiness | None = None
    awaited: str = ""
    awaited_after: Collection[str] = ()
    reads: Mapping[str, Read] = field(default_factory=dict)
    results: Collection[Result[Any]] = ()
    task: str = ""
    after: Collection[str] = ()
    carries_out: str = ""
    has_bundles: bool = False
    is_of_workers: bool = True
    is_wanted: Callable[[Object], bool] = always
    is_left_asleep: bool = True
    is_put_to_sleep_later: bool = False
    is_started_after_restoration: bool = False
    is_required: Callable[[Object], bool] = _never

    @property
    def can_be_unwanted(self) -> bool:
        return self.is_wanted is not always

    @property
    def id(self) -> str:
        """ID of its task."""
        return self.task or self.name

    def made(self, inputs: Inputs) -> list[Object]:
        """All its objects. Raises InputError."""
        made, contents = [*self.objects(inputs)], [*self.contents(inputs)]
        if contents:
            made += in_shoot(f"shoot-core-{self.name}", contents, namespace=inputs.namespace)
        return made
