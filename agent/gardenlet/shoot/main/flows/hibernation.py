"""Section of the flow of a Shoot in which its control plane hibernates, and the extensions around it."""

from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.shoot.main.flows import workers
from agent.gardenlet.shoot.main.flows.completion import LAST
from agent.gardenlet.shoot.main.flows.extensions import hibernates
from agent.gardenlet.shoot.main.flows.when import awake as _awake
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.tasks import exposure, hibernation
from components import kube_apiserver
from components.results import ADDRESS

HIBERNATION: list[Task[ShootOperation]] = [
    *hibernates("before kube-apiserver hibernation", Stage.AFTER_API_SERVER, ["referenced", "connection"]),
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
    *hibernates("after kube-apiserver hibernation", Stage.BEFORE_API_SERVER, ["sleep"], suffix="-after"),
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
