"""A gardenlet runs any one of its controllers without the others: it is ready, and watches nothing for these.

What each controller does is tested with it alone, too, in the other files.
"""

import asyncio
import contextlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from devcluster.audit import Audit
from kit.eventually import soon
from kit.garden import Garden
from kit.gardenlet_bootstrap import Entry
from kit.gardenlet_controllers import only
from kit.processes.forked_agents import Fork, forked_agents
from kit.seed_kinds import install_seed_kinds
from kube.objects import Object
from localprocesses.ports import free_port

pytestmark = pytest.mark.timeout(300)

_LOOP = re.compile(r'controller_runtime_max_concurrent_reconciles\{controller="([^"]+)"\}')
_ADMINISTRATORS = ("system:masters",)
_EXTENSIONS = {
    *("backupbuckets", "backupentries", "bastions", "containerruntimes", "controlplanes", "dnsrecords", "extensions"),
    *("infrastructures", "networks", "operatingsystemconfigs", "selfhostedshootexposures", "workers"),
}
_INSTALLATIONS = {"controllerinstallations", "controllerregistrations"}
_CARE = {
    *("backupentries", "containerruntimes", "controlplanes", "extensions", "infrastructures", "networks"),
    *("operatingsystemconfigs", "workers", "clusters", "deployments", "statefulsets", "etcds", "managedresources"),
    *("machinedeployments", "machines", "pods", "secrets", "shoots"),
} | _INSTALLATIONS
"""Beside Leases, which the audit leaves out."""
EXPECTED: dict[str, tuple[set[str], set[str]]] = {
    "backupBucket": ({"backupbucket"}, {"backupbuckets", "backupentries"}),
    "backupEntry": ({"backupentry"}, {"backupbuckets", "backupentries", "clusters"}),
    "bastion": ({"bastion"}, {"bastions"}),
    "controllerInstallation": ({"controllerinstallation"}, {"namespaces", "seeds", *_INSTALLATIONS}),
    "controllerInstallationCare": ({"controllerinstallation-care"}, {"controllerinstallations", "managedresources"}),
    "controllerInstallationRequired": ({"controllerinstallation-required"}, _EXTENSIONS | _INSTALLATIONS),
    "networkPolicy": ({"networkpolicy"}, {"clusters", "endpoints", "namespaces", "networkpolicies"}),
    "seed": ({"seed", "seed-lease"}, {"seeds", *_INSTALLATIONS}),
    "seedCare": ({"seed-care"}, {"managedresources", "seeds"}),
    "shoot": ({"shoot"}, {"controllerregistrations", "seeds", "shoots"}),
    "shootCare": ({"shoot-care"}, _CARE),
    "shootState": ({"shoot-state"}, {"shoots"}),
    "tokenRequestor": ({"token-requestor"}, {"secrets"}),
    "tokenRequestorWorkloadIdentity": ({"token-requestor-workload-identity"}, {"secrets"}),
    "vpaEvictionRequirements": ({"vpa-eviction-requirements"}, {"verticalpodautoscalers"}),
}
"""By the block of the configuration, its controllers, and the resources that are watched (beside definitions of kinds)."""
LATER = {"tokenRequestor": {"serviceaccounts"}}
"""What is watched once there is something to do, as other tests make it in the same cluster."""


@dataclass(slots=True)
class Seen:
    """Of one gardenlet."""

    controllers: set[str] = field(default_factory=set)
    watched: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def seen(garden: Garden, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """By the block that is switched on."""
    install_seed_kinds(garden.cluster)
    with contextlib.closing(garden.cluster.audit()) as audit:
        return asyncio.run(_all_at_once(garden, audit, tmp_path_factory.mktemp("single")))


async def _all_at_once(garden: Garden, audit: Audit, directory: Path) -> dict[str, Seen]:
    template = directory / "template.json"
    template.write_text(json.dumps(_configuration(garden, next(iter(EXPECTED)))))
    async with forked_agents(template) as fork, aiohttp.ClientSession() as session:
        started = await asyncio.gather(*(_one(garden, block, fork, session, directory) for block in EXPECTED))
        seen = dict(zip(EXPECTED, started, strict=True))

        def is_all_watched() -> bool:
            for call in audit.calls(verbs=("watch",), watches=True):
                if (block := call.user.removeprefix("only-")) in seen:
                    seen[block].watched.add(call.resource)
            return all(seen[block].watched >= watched for block, (_, watched) in EXPECTED.items())

        with contextlib.suppress(AssertionError):  # for the tests to report
            await soon(is_all_watched, "the watches")
    return seen


async def _one(garden: Garden, block: str, fork: Fork, session: aiohttp.ClientSession, directory: Path) -> Seen:
    config, file, log = _configuration(garden, block), directory / f"{block}.json", directory / f"{block}.log"
    file.write_text(json.dumps(config))
    process = await fork([f"--config={file}"], log)

    async def answer(server: str, path: str) -> str:
        if not process.runs:
            raise RuntimeError(log.read_text())
        async with session.get(f"http://127.0.0.1:{config['server'][server]['port']}{path}") as found:
            return await found.text() if found.status == 200 else ""

    async def controllers() -> set[str]:
        return set(
            _LOOP.findall(await answer("metrics", "/metrics") if await answer("healthProbes", "/readyz") else "")
        )

    found = await soon(controllers, f"{block} to be ready", passing=(aiohttp.ClientError,), state=log.read_text)
    return Seen(found)


def _configuration(garden: Garden, block: str) -> Object:
    kubeconfig = str(garden.cluster.kubeconfig_for(f"only-{block}", _ADMINISTRATORS))
    connection = {"kubeconfig": kubeconfig, "qps": 200, "burst": 300}
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "gardenClientConnection": connection,
        "seedClientConnection": connection,
        "leaderElection": {"leaderElect": False},
        "controllers": only(block),
        "server": {name: {"bindAddress": "127.0.0.1", "port": free_port()} for name in ("healthProbes", "metrics")},
        "seedConfig": Entry(garden, garden.cluster, name=f"only-{block.lower()}").seed_config,
    }


@pytest.mark.parametrize("block", EXPECTED)
def test_it_runs_without_the_others(block: str, seen: dict[str, Seen]) -> None:
    watched = seen[block].watched - {"customresourcedefinitions"} - LATER.get(block, set())
    assert (seen[block].controllers, watched) == EXPECTED[block]
