"""The agent as a process: what it refuses to start with, and what a started one reports and serves."""

import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.processes.agent import AgentProcess, configuration
from localprocesses.ports import free_port

MIB = 1 << 20


def ended(agent: AgentProcess) -> AgentProcess:
    with agent:
        agent.wait()
    return agent


# --- command line and configuration


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "missing config file"),
        (("--colour=red",), "unknown flag: --colour"),
        (("serve",), 'unexpected argument "serve"; only flags are taken'),
        (
            ("--config=/does/not/exist",),
            "error reading config file: open /does/not/exist: no such file or directory",
        ),
    ],
)
def test_a_wrong_command_line_is_explained_with_the_usage(arguments: tuple[str, ...], text: str) -> None:
    agent = ended(AgentProcess(None, bare=True, arguments=arguments))
    assert agent.exit_code == 1
    assert agent.output == f"{text}\n"
    assert agent.log.startswith("usage: resource-manager-agent --config FILE [flags]")
    assert agent.log.endswith(f"Error: {text}\n")


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("kind: Other", "error decoding config: expected apiVersion .*"),
        (configuration("x", logLevel="loud"), r'logLevel: Unsupported value: "loud": supported values: .*'),
        (configuration("x", logLevel="loud", logFormat="xml"), r"\[logLevel: .*, logFormat: .*\]"),
        (configuration("x", leaderElection={"resourceNamespace": ""}), ".*resourceNamespace: Required value.*"),
    ],
)
def test_a_wrong_configuration_is_explained(config: Any, text: str) -> None:
    agent = ended(AgentProcess(config))
    assert agent.exit_code == 1
    assert re.fullmatch(f"{text}\n", agent.output), agent.output
    assert agent.log.endswith(f"Error: {agent.output}")


def test_the_version_is_printed() -> None:
    agent = ended(AgentProcess(None, bare=True, arguments=("--version",)))
    assert agent.exit_code == 0
    assert re.fullmatch(r"gardener-resource-manager v\S+\n", agent.output)


# --- connections and addresses: errors after logging was set up are reported without the usage


def test_without_a_cluster_it_reports_what_to_configure() -> None:
    agent = ended(AgentProcess(configuration("x")))
    assert agent.exit_code == 1
    assert agent.output.startswith("invalid configuration: no configuration has been provided, ")
    assert "usage" not in agent.log
    assert agent.messages()[0] == "Starting gardener-resource-manager"


def test_a_kubeconfig_that_names_a_command_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("users: [{name: eve, user: {exec: {command: touch}}}]")
    agent = ended(AgentProcess(configuration("x"), kubeconfig=tmp_path / "kubeconfig"))
    assert agent.exit_code == 1
    assert agent.output.startswith('exec configurations are not supported (user "eve"), these are the valid fields: [')


def test_an_address_that_is_taken_ends_it(cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        agent = AgentProcess(configuration("x"), kubeconfig=cluster.kubeconfig)
        port = taken.getsockname()[1]
        agent.arguments.append(f"--health-probe-bind-address=127.0.0.1:{port}")
        ended(agent)
    assert agent.exit_code == 1
    assert agent.output == f"cannot listen on 127.0.0.1:{port} for health probes: Address already in use\n"
    assert "stacktrace" not in agent.log


def test_an_api_server_that_is_not_there_is_one_error_that_reports_what_to_do(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(
        re.sub(r"server: https://[\d.:]+", f"server: https://127.0.0.1:{free_port()}", cluster.kubeconfig.read_text())
    )
    config = configuration("x", controllers={"cacheSyncTimeout": "8s"})
    agent = ended(AgentProcess(config, kubeconfig=tmp_path / "kubeconfig"))
    first, last = (entry for entry in agent.entries if entry["level"] == "error")
    assert first["msg"] == "The API server can't be reached; trying again"
    assert first["error"].endswith(": cannot connect: Connection refused")
    assert first["remedy"].startswith("check whether the API server runs")
    assert last["error"].startswith("failed to wait for caches to sync within 8s")
    assert "SSLContext" not in agent.log
    assert "stacktrace" not in agent.log


def test_caches_that_cannot_be_filled_end_it(cluster: Cluster, namespace: str) -> None:
    config = configuration(namespace, controllers={"cacheSyncTimeout": "8s"})
    agent = ended(AgentProcess(config, kubeconfig=cluster.kubeconfig_for(f"stranger-{namespace}")))
    assert agent.exit_code == 1
    assert agent.output == (
        "failed to wait for caches to sync within 8s (controllers.cacheSyncTimeout): "
        "managedresources.v1alpha1.resources.gardener.cloud, secrets.v1 of the source cluster "
        f"at {cluster.url}\n"
    )
    failures = [e for e in agent.entries if e["msg"] == "Listing or watching failed, trying again with back-off"]
    assert len(failures) == 2
    assert all("forbidden" in entry["error"] for entry in failures)
    *others, last = (entry for entry in agent.entries if entry["level"] == "error")
    assert {entry["remedy"] for entry in others if entry["msg"] == "Reading objects is forbidden; trying again"} == {
        f"grant this user the rights to list and watch {name}, as the roles of the installation do"
        for name in ("managedresources.resources.gardener.cloud", "secrets")
    }
    assert last["error"] == agent.output.strip()
    assert "stacktrace" not in agent.log


# --- a started agent


def test_it_becomes_ready_serves_and_stops(cluster: Cluster, namespace: str, managed_resources: None) -> None:
    config = configuration(namespace, logFormat="json", colour="red")
    arguments = ("--version=v9.8.7",)
    with AgentProcess(config, kubeconfig=cluster.kubeconfig, arguments=arguments) as agent:
        agent.wait_until_ready().wait_until_leading()

        assert agent.probe("/readyz") == (200, "ok")
        assert agent.probe("/readyz?verbose")[1].splitlines() == [
            "[+]source-informer-sync ok",
            "[+]target-informer-sync ok",
            "healthz check passed",
        ]
        assert agent.probe("/healthz?verbose")[1].splitlines() == ["[+]ping ok", "healthz check passed"]

        metrics = agent.metrics()
        assert metrics['resource_manager_build_info{version="v9.8.7"}'] == 1
        assert metrics['leader_election_master_status{name="gardener-resource-manager"}'] == 1
        assert metrics["certwatcher_read_certificate_total"] == 0
        assert metrics["process_resident_memory_bytes"] > 0
        assert agent.metric("rest_client_requests_total")
        assert f'host="{cluster.url.removeprefix("https://")}"' in "".join(metrics)
        assert agent.resident_bytes < 60 * MIB

        agent.wait_for_log("Using cluster id")
        assert agent.stop() == 0
    assert agent.output == ""
    start, *flags = agent.entries[:9]
    assert (start["msg"], start["version"]) == ("Starting gardener-resource-manager", "v9.8.7")
    assert [entry["msg"].partition("=")[0] for entry in flags[:7]] == [
        "FLAG: --check",
        "FLAG: --config",
        "FLAG: --extra-target-namespace",
        "FLAG: --health-probe-bind-address",
        "FLAG: --help",
        "FLAG: --metrics-bind-address",
        "FLAG: --version",
    ]
    assert "colour" in flags[7]["msg"]
    assert not [entry for entry in agent.entries if entry["level"] == "error"]


def test_the_configuration_file_states_where_to_listen(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    probes, metrics = free_port(), free_port()
    server = {
        "healthProbes": {"bindAddress": "127.0.0.1", "port": probes},
        "metrics": {"bindAddress": "127.0.0.1", "port": metrics},
    }
    agent = AgentProcess(configuration(namespace, server=server), kubeconfig=cluster.kubeconfig)
    agent.arguments = agent.arguments[:1]
    agent.probe_port, agent.metrics_port = probes, metrics
    with agent:
        agent.wait_until_ready()
        assert agent.metrics()


def test_one_cluster_as_source_and_target_is_watched_once(cluster: Cluster, namespace: str, audit: Audit) -> None:
    with AgentProcess(configuration(namespace), kubeconfig=cluster.kubeconfig) as agent:
        agent.wait_until_ready().wait_for_log("Using cluster id")
        lists = audit.count(namespace=namespace, user_agent="gardener-resource-manager/", verbs=["list"])
        assert lists.pop(("list", "secrets")) == 1
        assert set(lists) <= {("list", "managedresources")}


def test_a_source_and_a_target_differ_in_messages(cluster: Cluster, target_cluster: Cluster, namespace: str) -> None:
    with AgentProcess(
        configuration(namespace), kubeconfig=cluster.kubeconfig, target_kubeconfig=target_cluster.kubeconfig
    ) as agent:
        agent.wait_until_ready().wait_until_leading().wait_for_log("Using cluster id")
        target = target_cluster.url.removeprefix("https://")
        found = agent.wait_for(
            lambda: [
                each for each in agent.metrics() if each.startswith("rest_client_requests_total") and target in each
            ],
            what="requests to the target",
        )
        # The lease and the identity are the source's; of the target only its kinds are wanted so far.
        assert all('method="GET"' in series for series in found)


def test_ctrl_c_ends_it_cleanly(cluster: Cluster, namespace: str) -> None:
    with AgentProcess(configuration(namespace), kubeconfig=cluster.kubeconfig) as agent:
        agent.wait_until_ready()
        agent.signal(signal.SIGINT)
        assert agent.wait() == 0
