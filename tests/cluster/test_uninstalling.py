"""Without the CustomResourceDefinition: who removes everything as docs/install.md states gets no error, and nothing is
left; an agent that finds none reports which file installs it.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from kit.eventually import PATIENCE
from kit.kinds import wait_until_served
from kit.objects import managed_resource, obj
from kit.processes.agent import AgentProcess, sole_configuration
from kit.world import Place

ROOT = Path(__file__).parents[2]
_LEFT = "all,leases,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,configmaps,secrets"
_OF_CLUSTER = (
    "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,"
    "customresourcedefinitions"
)

pytestmark = pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        Place(own, "").create(obj("Namespace", "garden"))
        yield own


def run(cluster: Cluster, command: str) -> str:
    """In the directory of the project, as its reader is; what it prints."""
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(
        command.split(), cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout + done.stderr


def test_what_the_page_states_removes_everything_without_an_error(own_cluster: Cluster) -> None:
    section = (ROOT / "docs/install.md").read_text().partition("\n## Uninstalling\n")[2]
    block = re.search(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert block is not None
    run(own_cluster, "kubectl apply --server-side -k manifests/overlays/runtime")
    for command in block[1].splitlines():
        run(own_cluster, command)
    names = run(own_cluster, f"kubectl get {_LEFT} -n garden -o name") + run(
        own_cluster, f"kubectl get {_OF_CLUSTER} -o name"
    )
    assert "resource-manager" not in names
    assert "resources.gardener.cloud" not in names


def test_an_agent_reports_which_file_defines_managed_resources(own_cluster: Cluster) -> None:
    run(own_cluster, "kubectl delete -k manifests/crds --ignore-not-found")
    with AgentProcess(sole_configuration(), kubeconfig=own_cluster.kubeconfig) as agent:

        def named() -> str:
            lines = [orjson.loads(line) for line in agent.log.splitlines()]
            return next((line["install"] for line in lines if "install" in line), "")

        command = agent.wait_for(named, what="the command")
        run(own_cluster, command)
        wait_until_served(own_cluster, MANAGED_RESOURCES.path())
        Place(own_cluster, "garden").create(managed_resource("mr"))
        agent.wait_for(lambda: Place(own_cluster, "garden").condition("mr", "ResourcesApplied"), what="a condition")
    run(own_cluster, 'kubectl -n garden patch managedresource mr --type=merge -p {"metadata":{"finalizers":null}}')
