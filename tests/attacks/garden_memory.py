"""Members of a Project fill the memory of all programs of a garden with objects that anybody may create.

    python -m tests.attacks.garden_memory [NUMBER]

Of each sort so many are made (10): ConfigMaps, Secrets, ServiceAccounts and Shoots with tens of thousands of labels,
annotations or finalizers, and five times as many NamespacedCloudProfiles of 170 bytes below a CloudProfile of 180 kB.
Then the programs are started again, and another client makes a Shoot, which the scheduler is to decide about. Everything is on a control
plane on loopback of this program's own.
"""

import sys
import time

from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from gardener.api.garden import SHOOTS
from kit.eventually import eventually
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.hostile_garden import GardenPrograms, make_hostile
from kube.paths import at

_NUMBER = 10
_SETTLED_SECONDS = 15.0


def main(arguments: list[str]) -> int:
    number = int(arguments[0]) if arguments else _NUMBER
    with Cluster() as cluster:
        GardenBox(cluster).install()
        garden = Garden(cluster)
        hostile, good = ShootPlace(garden), ShootPlace(garden)
        with GardenPrograms(garden) as programs:
            print(f"at first, MiB: {programs.peaks()}", flush=True)
            make_hostile(hostile, each=number)
            time.sleep(_SETTLED_SECONDS)
            print(f"after {number} of each sort, MiB: {programs.peaks()}", flush=True)
        with GardenPrograms(garden) as programs:
            time.sleep(_SETTLED_SECONDS)
            print(f"after a restart, MiB: {programs.peaks()}", flush=True)
            began = time.monotonic()
            good.shoot()
            description = ("status", "lastOperation", "description")
            eventually(lambda: at(good.get(SHOOTS, "s"), *description), "the scheduler to decide about the Shoot")
            print(f"a user's Shoot was decided about after {time.monotonic() - began:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
