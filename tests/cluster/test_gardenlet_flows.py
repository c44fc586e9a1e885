"""The flow of a Seed, as the gardenlet's metrics and `kubectl gardener flow` show it."""

from collections.abc import Iterator
from socket import gethostname
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from devcluster.testing.pytest_plugin import RunClusters
from gardener.garden.seeds import LEASE_NAMESPACE, LOCAL_GARDENLET
from kit.eventually import eventually
from kit.garden import Garden
from kit.gardenlet_flows import MANAGER, FlowWorld, waiting_seed
from kit.gardenlet_seeds import GARDEN
from kube.resources import LEASES, PODS
from kubectl.garden.__main__ import app

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def world(garden: Garden, devcluster_run: RunClusters) -> Iterator[FlowWorld]:
    with waiting_seed(garden) as world:
        yield world


def _ask(world: FlowWorld, *arguments: str, code: int = 0, command: str = "flow") -> Result:
    environment = {"KUBECONFIG": str(world.place.garden.cluster.kubeconfig), "NO_COLOR": "1"}
    result = CliRunner().invoke(app, [command, *arguments], env=environment)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_the_command_shows_the_same(world: FlowWorld) -> None:
    reported = _ask(world, f"seed/{world.place.name}", "--gardenlet", world.url).output
    assert reported.startswith(f"Seed {world.place.name}\nSeed reconciliation Running")
    (line,) = [each for each in reported.splitlines() if MANAGER in each and each.startswith("Running")]
    assert "█" in line
    assert world.waits() in line
    data = orjson.loads(_ask(world, f"seed/{world.place.name}", "--gardenlet", world.url, "-o", "json").output)
    assert data["running"]["flow"] == "Seed reconciliation"


def test_commands_find_a_gardenlet_on_this_computer_by_themselves(world: FlowWorld) -> None:
    address = f"http://127.0.0.1:{world.process.metrics_port}"
    name, note = f"seed/{world.place.name}", {LOCAL_GARDENLET: f"{gethostname()} {address}"}
    world.place.garden.patch(LEASES, world.place.name, {"metadata": {"annotations": note}}, namespace=LEASE_NAMESPACE)
    found = eventually(lambda: _flow_or_none(world, name), "the gardenlet to answer")
    assert found.startswith(f"Seed {world.place.name}\nSeed reconciliation Running")
    assert f"task {MANAGER}: waits for" in " ".join(_ask(world, name, command="why").output.split())


def _flow_or_none(world: FlowWorld, name: str) -> str | None:
    environment = {"KUBECONFIG": str(world.place.garden.cluster.kubeconfig), "NO_COLOR": "1"}
    result = CliRunner().invoke(app, ["flow", name], env=environment)
    return result.output if result.exit_code == 0 else None


def test_why_names_the_object_that_a_task_waits_for(world: FlowWorld) -> None:
    name = f"seed/{world.place.name}"

    def blocking() -> list[dict[str, Any]]:
        data = orjson.loads(_ask(world, name, "--gardenlet", world.url, "-o", "json", command="why").output)
        awaited = [each for each in data["findings"] if each["about"] == "task" and each["level"] == "blocked"]
        return [each for each in awaited if each["message"].startswith(MANAGER)]

    (found,) = eventually(blocking, "the task to wait for longer than usual")
    assert f"{MANAGER}: waits for Lease {GARDEN}/gardener-resource-manager for " in found["message"]
    assert found["remedy"].endswith(f"kubectl describe lease gardener-resource-manager -n {GARDEN}")
    assert found["time"] >= world.flow("running")["began"]


def test_why_shows_what_the_garden_knows_if_the_gardenlet_does_not_answer(world: FlowWorld) -> None:
    reported = _ask(world, f"seed/{world.place.name}", "--gardenlet", "http://127.0.0.1:1", command="why")
    assert "the state of its tasks is unknown: the gardenlet can't be reached" in reported.stderr
    assert "heartbeat" in reported.stdout
    assert "task " not in reported.stdout


def test_the_command_reports_what_to_do_if_there_is_no_flow_or_no_gardenlet(world: FlowWorld) -> None:
    assert "knows no flow of Shoot default/other" in _ask(world, "other", "--gardenlet", world.url, code=1).output
    assert "does it run" in _ask(world, "other", "--gardenlet", "http://127.0.0.1:1", code=1).output
    assert "is not a valid address of a gardenlet" in _ask(world, "other", "--gardenlet", "localhost:1", code=1).output
    assert "neither a Shoot nor a Seed" in _ask(world, "pod/x", code=1).output
    assert "Shoot default/other not found" in _ask(world, "other", code=1).output
    assert f"did you mean {world.place.name}?" in _ask(world, f"seed/{world.place.name}x", code=1).output


def test_the_command_finds_the_leader_and_queries_through_the_api_server(world: FlowWorld) -> None:
    seed, name = world.place.cluster, f"seed/{world.place.name}"
    arguments = (name, "--seed-kubeconfig", str(seed.kubeconfig))
    assert "no gardenlet holds the Lease" in _ask(world, *arguments, code=1).output
    lease = {
        "metadata": {"name": "gardenlet-leader-election"},
        "spec": {"holderIdentity": "gardenlet-1_x", "leaseDurationSeconds": 15},
    }
    seed.api.create(LEASES.path(namespace=GARDEN), lease)
    assert "is not a pod of this cluster" in _ask(world, *arguments, code=1).output
    ports = [{"name": "metrics", "containerPort": world.process.metrics_port}]
    container = {"name": "gardenlet", "image": "example.com/gardenlet:1", "ports": ports}
    pod = {"metadata": {"name": "gardenlet-1"}, "spec": {"containers": [container]}}
    seed.api.create(PODS.path(namespace=GARDEN), pod)
    # No kubelet gives the pod an address here, so this is as far as the request gets.
    reported = _ask(world, *arguments, code=1).output
    assert "the gardenlet can't be reached" in reported
    assert "port-forward" in reported


def test_the_last_flow_is_kept_and_the_metric_has_its_tasks(world: FlowWorld) -> None:
    with world.place.resource_manager():
        world.place.finished()
    last = eventually(lambda: world.flow("last"), "the flow to end", state=lambda: world.flow("running"))
    assert (last["state"], {each["state"] for each in last["tasks"]}) == ("Succeeded", {"Succeeded"})
    task = world.tasks("last")["resource-manager"]
    assert "start it" in task["reason"]
    assert world.tasks("last")["system"]["after"] == [MANAGER]
    labels = '{flow="Seed reconciliation",task="resource-manager"}'
    assert world.process.metrics()[f"gardenlet_flow_task_duration_seconds_count{labels}"] >= 1
