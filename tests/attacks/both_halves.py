"""Attacks on the agent and on the webhook server at the same time, where both are one process.

    python -m tests.attacks.both_halves

The process is that of the image, with a control plane of its own. Six ManagedResources with Secrets of some hundred
bytes that unfold are created and changed again and again, while clients at the webhooks' port send large reviews, hold
requests open, and keep connections idle. A bystander meanwhile creates small ManagedResources in another namespace,
another client sends reviews of a small Pod over new connections, and /healthz is queried. The same is measured before
without attacks: on a busy machine, everybody waits.
"""

import asyncio
import contextlib
import json
import math
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence

from attacks import decoding, webhooks
from attacks.bystanders import Bystander, namespace
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import managed_resource, obj
from kit.processes.agent import PROJECT
from kit.processes.webhooks import WebhookProcess
from kit.rig import resident_peak_bytes
from kit.world import Place
from kube.resources import SECRETS

NAMESPACE = "halves"
_ATTACKERS = 6
_SECONDS, _SECONDS_BEFORE = 60.0, 15.0
_ON_WEBHOOKS = (webhooks.values, webhooks.held, webhooks.at_the_limit, webhooks.idle)
_UNLIMITED = {"qps": 1000, "burst": 1300}


def _image(cluster: Cluster) -> WebhookProcess:
    process = WebhookProcess(
        webhooks.WEBHOOKS,
        kubeconfig=cluster.kubeconfig,
        sourceClientConnection=_UNLIMITED,
        targetClientConnection=_UNLIMITED,
    )
    process.program = "image"
    return process


class Attacker(threading.Thread):
    """Decoding bombs of all sorts, which change all the time."""

    def __init__(self, cluster: Cluster, ends: threading.Event) -> None:
        super().__init__()
        self.place, self.ends = Place(cluster, NAMESPACE), ends

    def run(self) -> None:
        number = 0
        while not self.ends.wait(0.5):
            for sort in decoding.SORTS:
                name = f"attacker-{number % _ATTACKERS}"
                secret = obj(SECRETS, name, data=decoding.secret_data(sort), annotations={"turn": str(number)})
                with contextlib.suppress(Exception):
                    self.place.delete("Secret", name)
                with contextlib.suppress(Exception):
                    self.place.create(secret)
                with contextlib.suppress(Exception):
                    self.place.create(managed_resource(name))
                number += 1


class Prober(threading.Thread):
    def __init__(self, process: WebhookProcess, ends: threading.Event) -> None:
        super().__init__()
        self.process, self.ends = process, ends
        self.waits: list[float] = []

    def run(self) -> None:
        while not self.ends.wait(0.05):
            began = time.monotonic()
            status, _ = self.process.probe("/healthz")
            self.waits.append(time.monotonic() - began if status == 200 else math.inf)


async def _on_webhooks(port: int, seconds: float, attacks: Sequence[Callable[[int], Awaitable[None]]]) -> str:
    """The report of the innocent client. An attack that is under way at the end is broken off."""
    asking = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.attacks.innocent", str(port)),
        cwd=PROJECT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    await asyncio.sleep(0.1)
                    for attack in attacks:
                        await attack(port)
        reported, _ = await asyncio.wait_for(asking.communicate(b""), 120)
        return reported.decode()
    finally:
        if asking.returncode is None:
            asking.kill()


def _measure(cluster: Cluster, process: WebhookProcess, *, attacked: bool) -> None:
    """Print what others wait for."""
    ends, name = threading.Event(), "attacked" if attacked else "before"
    bystander, prober = Bystander(namespace(cluster, name), ends, name=name), Prober(process, ends)
    workers = [bystander, prober, *([Attacker(cluster, ends)] if attacked else [])]
    for worker in workers:
        worker.start()
    seconds, attacks = (_SECONDS, _ON_WEBHOOKS) if attacked else (_SECONDS_BEFORE, ())
    try:
        longest, reviews, failures = json.loads(asyncio.run(_on_webhooks(process.port, seconds, attacks)))
    finally:
        ends.set()
    for worker in workers:
        worker.join()
    print(f"\n| {name} | longest, s | number |\n|---|---|---|")
    print(f"| /healthz | {max(prober.waits):.2f} | {len(prober.waits)} |")
    print(f"| review of a small Pod | {longest:.2f} | {reviews}, {failures} failed |")
    for what, waits in (("applied", bystander.applied), ("repaired", bystander.repaired)):
        print(f"| small ManagedResource {what} | {max(waits):.2f} | {len(waits)} |")
    print(f"\nmemory of the process, all in all: at most {resident_peak_bytes(process) >> 20} MiB", flush=True)


def main() -> int:
    with Cluster() as cluster:
        install_crd(cluster)
        namespace(cluster, NAMESPACE)
        for sort in decoding.SORTS:
            decoding.secret_data(sort)  # packing takes long
        with _image(cluster) as process:
            process.wait_until_leading()
            _measure(cluster, process, attacked=False)
            _measure(cluster, process, attacked=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
