"""The demo shows what it promises, and leaves nothing behind however it ends."""

import os
import re
import signal
from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from kit.processes.demo import RunningDemo

pytestmark = pytest.mark.usefixtures("devcluster_run")


@pytest.fixture
def name() -> Iterator[str]:
    name = f"demo-{os.getpid()}"
    yield name
    Cluster(name=name).stop()


def test_it_shows_what_agent_and_webhooks_do(name: str) -> None:
    with RunningDemo(name, "--once") as demo:
        assert demo.end() == 0, demo.text
        assert "\033" not in demo.text
        for bundle in ("monitoring", "shop", "vouchers"):
            assert re.search(rf"^garden +{bundle} +<none> +True +True +False +\d+s$", demo.text, re.MULTILINE), (
                demo.text
            )
        assert re.search(r"^✔ spec.replicas was 2, then 0, and was repaired after \d+ ms$", demo.text, re.MULTILINE)
        assert re.search(r"^✔ data.greeting was 'Welcome!', .* was repaired after \d+ ms$", demo.text, re.MULTILINE)
        assert re.search(r"Normal +Reconciled +managedresource/shop", demo.text)
        assert "$ kubectl mr suspend shop -n garden --reason 'trying another greeting'\n" in demo.text
        assert re.search(r"^ +- Go away!$", demo.text, re.MULTILINE), demo.text
        assert re.search(r"^✔ shop is ready$", demo.text, re.MULTILINE), demo.text
        assert "✔ an agent leads in namespace garden, for the class resources (the default)\n" in demo.text
        assert re.search(r"in a browser: http://127.0.0.1:\d+/$", demo.text, re.MULTILINE)
        for change in ("replicas +1 +2", "spread over +<none> +kubernetes.io/hostname"):
            assert re.search(rf"^{change}$", demo.text, re.MULTILINE), demo.text
        assert re.search(r"^token mounted from +<none> +kube-api-access-gardener$", demo.text, re.MULTILINE)
        refused = 'must have a "confirmation.gardener.cloud/deletion" annotation to delete: CustomResourceDefinition '
        assert f"{refused}treasures.example.com\n" in demo.text
        assert "it is gone, since the deletion was confirmed" in demo.text
        assert f"export KUBECONFIG={demo.cluster.kubeconfig}" in demo.text
        demo.assert_nothing_is_left()


def test_it_stays_until_ctrl_c(name: str) -> None:
    with RunningDemo(name) as demo:
        demo.read_until("Ctrl-C")
        assert {"agent", "webhooks", "kube-apiserver"} <= demo.cluster.component_states().keys()
        demo.process.send_signal(signal.SIGINT)
        assert demo.end() == 0, demo.text
        demo.assert_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_can_be_ended_while_it_still_starts(name: str, number: signal.Signals) -> None:
    with RunningDemo(name) as demo:
        demo.read_until("control plane")
        demo.process.send_signal(number)
        assert demo.end() == 0, demo.text
        demo.assert_nothing_is_left()


def test_an_agent_that_dies_is_an_error_that_shows_its_log(name: str) -> None:
    with RunningDemo(name) as demo:
        demo.read_until("the agent is ready")
        os.kill(demo.cluster.component_states()["agent"]["pid"], signal.SIGKILL)
        assert demo.end() == 1, demo.text
        assert "error: the agent ended with -9; the end of its log:" in demo.text
        assert "resource-manager" in demo.text.partition("the end of its log:")[2]
        demo.assert_nothing_is_left()


def test_a_second_one_of_the_same_name_is_refused(name: str) -> None:
    with Cluster(name=name), RunningDemo(name, "--once") as second:
        assert second.end() == 1
        assert "choose another name: make demo NAME=x" in second.text
        assert Cluster.running(name)
