"""Section of the flow of a Shoot in which its control plane hibernates, and the extensions around it."""

from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.shoot.main.flows import workers
from agent.gardenlet.shoot.main.flows.completion import LAST
from agent.gardenlet.shoot.main.flows.when import any_of as _any
from agent.gardenlet.shoot.main.flows.when import awake as _awake
from agent.gardenlet.shoot.main.flows.when import no_waiting as _no_waiting
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.tasks import exposure, extensions, hibernation
from components import kube_apiserver
from components.results import ADDRESS

_awake_or_no_waiting = _any(_awake, _no_waiting)

HIBERNATION: list[Task[ShootOperation]] = [
    Task(
        "extensions-hibernate",
        "Hibernating extension resources before kube-apiserver hibernation",
        extensions.deploys(Stage.AFTER_API_SERVER),
        after=["referenced", "connection"],
        unless=_awake,
    ),
    Task(
        "extensions-hibernated",
        "Waiting until extension resources hibernated before kube-apiserver hibernation are ready",
        extensions.waits(Stage.AFTER_API_SERVER),
        after=["extensions-hibernate"],
        unless=_awake_or_no_waiting,
        retry=ONCE,
    ),
    Task(
        "sleep",
        "Hibernating control plane",
        hibernation.sleep,
        after=[
            "connection",
            "extensions-hibernated",
            "access",
            "namespaces",
            "controller-manager",
            LAST,
            "stale-extensions",
            *workers.BEFORE_SLEEP,
        ],
        unless=_awake,
        retry=ONCE,
        reads=kube_apiserver.COMPONENT.results,
    ),
    Task(
        "extensions-hibernate-after",
        "Hibernating extension resources after kube-apiserver hibernation",
        extensions.deploys(Stage.BEFORE_API_SERVER),
        after=["sleep"],
        unless=_awake,
    ),
    Task(
        "extensions-hibernated-after",
        "Waiting until extension resources hibernated after kube-apiserver hibernation are ready",
        extensions.waits(Stage.BEFORE_API_SERVER),
        after=["extensions-hibernate-after"],
        unless=_awake_or_no_waiting,
        retry=ONCE,
    ),
    Task(
        "remove-external-name",
        "Destroying external domain DNS record if hibernated",
        exposure.remove_external_name,
        after=["sleep"],
        unless=_awake,
        retry=ONCE,
        reads=[ADDRESS],
    ),
    Task(
        "remove-internal-name",
        "Destroying internal domain DNS record if hibernated",
        exposure.remove_internal_name,
        after=["sleep"],
        unless=_awake,
        retry=ONCE,
        reads=[ADDRESS],
    ),
]
