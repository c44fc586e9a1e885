"""Section of the flow of a Shoot in which its control plane hibernates, and the extensions around it."""

from dataclasses import replace

from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.flow.unit import Unit
from agent.gardenlet.shoot.main.flows import workers
from agent.gardenlet.shoot.main.flows.completion import LAST
from agent.gardenlet.shoot.main.flows.components import Entry
from agent.gardenlet.shoot.main.flows.extensions import hibernates
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.skipping import awake
from agent.gardenlet.shoot.main.tasks import exposure, hibernation
from components import kube_apiserver


def _removes(unit: Unit[ShootOperation]) -> Task[ShootOperation]:
    task = unit.gone(["sleep"], unless=awake)
    return replace(task, id=f"remove-{unit.id}", name=f"{task.name} if hibernated")


HIBERNATION: list[Entry] = [
    hibernates("before kube-apiserver hibernation", Stage.AFTER_API_SERVER, ["referenced", "connection"]),
    Task(
        "sleep",
        "Hibernating control plane",
        hibernation.sleep,
        after=[
            *("connection", "extensions-hibernated", "access", "namespaces", "controller-manager"),
            *(LAST, "stale-extensions", *workers.BEFORE_SLEEP),
        ],
        unless=awake,
        retry=ONCE,
        reads=kube_apiserver.COMPONENT.results,
    ),
    hibernates("after kube-apiserver hibernation", Stage.BEFORE_API_SERVER, ["sleep"], suffix="-after"),
    _removes(exposure.EXTERNAL_NAME),
    _removes(exposure.INTERNAL_NAME),
]
