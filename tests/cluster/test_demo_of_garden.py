"""The demo of the garden API shows what it promises, and leaves nothing behind."""

import os
import re
import signal
from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.processes.demo import RunningDemo

pytestmark = [pytest.mark.usefixtures("devcluster_run"), pytest.mark.timeout(1800)]


@pytest.fixture
def name() -> Iterator[str]:
    name = f"demo-garden-{os.getpid()}"
    yield name
    Cluster(name=name).stop()


def test_the_api_and_the_controllers_do_what_is_theirs_and_seeds_follow_shoots(name: str) -> None:
    with RunningDemo(name, "--garden", "--once") as demo:
        assert demo.end() == 0, demo.text
        assert re.search(r"^Kubernetes +1\.30 +1\.30\.5$", demo.text, re.MULTILINE), demo.text
        assert re.search(r"^created by +<none> +devcluster-admin$", demo.text, re.MULTILINE)
        _, _, refused = demo.text.partition('The Shoot "nettle" is invalid:\n')
        reasons, _, rest = refused.partition("\n\n")
        assert set(re.findall(r"^\* ([^:]+):", reasons, re.MULTILINE)) == {
            "spec.maintenance.timeWindow",
            "spec.credentialsBindingName",
            "spec.region",
            "spec.kubernetes.version",
            "spec.provider.workers[0].machine.type",
            "spec.networking.type",
        }
        assert "$ kubectl explain shoot.spec.maintenance.timeWindow\n" in rest
        assert "  begin  <string>\n" in rest
        for outcome in (
            r"seed-csr-\S+ +\S+ +kubernetes\.io/kube-apiserver-client +system:bootstrap:[0-9a-f]{6} +\S+ +Approved,Issued",
            r"The token has served its purpose: the gardenlet has deleted it\.",
            r"the Seed is ready: Seed cluster has been successfully reconciled\.",
            r"rosebed +Ready +Reconcile +Succeeded",
            r"deny-all +<none> ",
            r"the scheduler has chosen the Seed rosebed",
            r"the cluster is up \(\d+\.\d s\)\nPROGRAM",
            r"^kube-apiserver +\d+ +\d+ MiB$",
            r"get namespaces\nNAME +STATUS +AGE\ndefault +Active ",
            r"^extension-local +<none> +True +True +False ",
            r"it is back: the Shoot's resource manager has applied it again",
            r"kill -KILL \d+ .*\n✔ it answers again, as process \d+ \(\d+\.\d s\)",
            r"it sleeps: no process is left; its data are in /\S+/shoot--dev--rose",
            r"it is awake, at the same address",
            r"get configmap diary\nNAME +DATA +AGE\ndiary +1 ",
            r"Running Cleaning Kubernetes resources .* Service default/fountain \(waits for example\.com/load-balancer\)",
            r"the Shoot is gone: its processes, its data, and its namespace in the Seed, too \(\d+\.\d s\)",
            r"the Seed is lost: GardenletReady is Unknown",
            r"the gardenlet is back, with the certificate that it had: GardenletReady is True",
            r"certificate [0-9a-f]{8}… .* is replaced by certificate [0-9a-f]{8}… .*; nothing was restarted",
            r"the Project has the namespace garden-bloom-[0-9a-f]{5}, and its members have their rights there",
            r'the Shoot was maintained: .*Updated Kubernetes version from "1\.30\.5" to "1\.30\.6"',
            r"Cannot delete CloudProfile, because .* still referencing it: \[garden-dev/poppy\]",
            r"its last user has gone, and so has the profile",
            r"APIServerAvailable is Unknown, Gardenlet stopped sending heartbeats",
            r"meadow +Unknown ",
            r"the set has made a Shoot, and a gardenlet in it makes it the Seed botany-0 \(\d+\.\d s\)",
            r"aster is on botany-0, which is full",
            r"aster is a cluster, whose control plane is in the Shoot botany-0 \(\d+\.\d s\)",
            r"blocked +seed capacity +Seed botany-0: seed does not have available capacity for shoots",
            r"blocked +seed usable +Seed rosebed: spec\.settings\.scheduling\.visible is false",
            r"it has scaled the set: New size: 2; reason: ",
            r"clover is on botany-1",
            r"clover is a cluster, whose control plane is in the Shoot botany-1 \(\d+\.\d s\)",
            r"botany-1 +\w+ +Reconcile +Succeeded",
            r"^kube-apiserver +6 +\d+ MiB$",
            r"^all +\d+ +\d+ MiB$",
            r"the SeedAutoscaler has scaled the set: New size: 1; reason: all metrics are below their targets",
            r"the Seed botany-1 has gone, and its Shoot; botany-0 is used, and stays",
            r"botany +botany +1 +3 +1 +1 ",
            r"aster sleeps: the controller manager has requested it, at \d{4}-\S+:00Z",
        ):
            assert re.search(outcome, demo.text, re.MULTILINE), (outcome, demo.text)
        demo.assert_nothing_is_left()


def test_it_can_be_ended_while_a_shoot_comes_up(name: str) -> None:
    with RunningDemo(name, "--garden") as demo:
        demo.read_until("the scheduler has chosen the Seed")
        eventually(lambda: any("etcd-main" in each for each in demo.left_processes()), "processes of the Shoot")
        demo.process.send_signal(signal.SIGINT)
        assert demo.end() == 0, demo.text
        demo.assert_nothing_is_left()
