"""Kubeconfigs that run a plugin for their credentials, which only tools that a person runs may use."""

import asyncio
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from kube.errors import Unreachable
from kube.resources import NAMESPACES
from kube.runtime.client import Client
from kube.runtime.connection import Connection, load_kubeconfig
from kube.runtime.kubeconfig import ConfigurationError
from kube.runtime.transport import Transport
from localprocesses.pki import kubeconfig

CREDENTIAL = """{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}"""


def write_plugin(directory: Path, script: str) -> None:
    path = directory / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def connection(cluster: Cluster, directory: Path) -> Connection:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(directory / "plugin")}}
    path = directory / "kubeconfig"
    path.write_text(kubeconfig(name="plugin", url=cluster.url, ca=cluster.ca, user=user))
    return load_kubeconfig(path, trusted=True)


async def test_a_plugin_is_run_once_and_again_when_its_token_is_not_taken(cluster: Cluster, tmp_path: Path) -> None:
    count = f"echo run >> {tmp_path}/runs"
    write_plugin(tmp_path, f"{count}; cat {tmp_path}/credential")
    (tmp_path / "credential").write_text(CREDENTIAL % cluster.token)
    async with Transport(connection(cluster, tmp_path)) as transport:
        client = Client(transport, user_agent="plugin-test")
        await asyncio.gather(*(client.get(NAMESPACES, "default") for _ in range(3)))
        assert (await client.get(NAMESPACES, "default"))["kind"] == "Namespace"
    assert (tmp_path / "runs").read_text() == "run\n"

    (tmp_path / "credential").write_text(CREDENTIAL % "outdated")
    async with Transport(connection(cluster, tmp_path)) as transport:
        client = Client(transport, user_agent="plugin-test")
        await transport.connection.credentials.authorization()
        (tmp_path / "credential").write_text(CREDENTIAL % cluster.token)
        assert (await client.get(NAMESPACES, "default"))["kind"] == "Namespace"
    assert (tmp_path / "runs").read_text() == "run\n" * 3


@pytest.mark.parametrize("script", ["exit 1", "echo nonsense", "echo '{}'"])
async def test_a_plugin_that_fails_is_an_error_and_is_run_again(script: str, cluster: Cluster, tmp_path: Path) -> None:
    write_plugin(tmp_path, script)
    async with Transport(connection(cluster, tmp_path)) as transport:
        client = Client(transport, user_agent="plugin-test")
        message = f"the plugin of the kubeconfig {tmp_path}/kubeconfig"
        with pytest.raises(ConfigurationError, match=message):
            await transport.connection.credentials.authorization()
        with pytest.raises(Unreachable, match=message):
            await client.get(NAMESPACES, "default")
        write_plugin(tmp_path, f"echo '{CREDENTIAL % cluster.token}'")
        assert (await client.get(NAMESPACES, "default"))["kind"] == "Namespace"


def test_what_runs_in_a_cluster_does_not_import_the_library_for_plugins() -> None:
    program = (
        "import importlib, pkgutil, sys, agent, kube\n"
        "for package in (kube, agent):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
        "print('kube.runtime.connection' in sys.modules, 'kubernetes_asyncio' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split() == ["True", "False"]
