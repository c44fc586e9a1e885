"""The files of connections are replaced while the programs run, for both clusters: a new CA, a new token."""

import asyncio
import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from devcluster.cluster import Cluster
from devcluster.testing.proxy import FaultProxy
from kit.eventually import eventually
from kit.managed_resources import install_crd
from kit.objects import config_map
from kit.processes.agent import AgentProcess, configuration
from kit.processes.webhooks import WebhookProcess
from kit.proxied import proxy_to
from kit.rig import Rig
from kube.errors import NotFound
from localprocesses.pki import Authority


def write_kubeconfig(directory: Path, proxy: FaultProxy, token: str) -> Path:
    """With the CA in a file, which is what `trust` replaces."""
    directory.mkdir()
    path = directory / "kubeconfig"
    proxy.write_kubeconfig(path, token=token)
    document = yaml.safe_load(path.read_text())
    document["clusters"][0]["cluster"].pop("certificate-authority-data")
    document["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"
    path.write_text(yaml.safe_dump(document))
    return path


def trust(kubeconfig: Path, authority: Authority) -> None:
    kubeconfig.with_name("ca.crt").write_bytes(authority.bundle)


@pytest.fixture
def in_target(target_cluster: Cluster, namespace: str) -> Iterator[str]:
    target_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    yield f"/api/v1/namespaces/{namespace}/configmaps/c"
    target_cluster.api.delete(f"/api/v1/namespaces/{namespace}")


async def test_a_new_ca_is_followed_by_both_programs_for_both_clusters(
    cluster: Cluster, target_cluster: Cluster, namespace: str, in_target: str, tmp_path: Path
) -> None:
    install_crd(cluster)
    async with contextlib.AsyncExitStack() as stack:
        clusters = {"source": cluster, "target": target_cluster, "webhooks": target_cluster}
        proxies = {name: await stack.enter_async_context(proxy_to(each)) for name, each in clusters.items()}
        files = {name: write_kubeconfig(tmp_path / name, proxies[name], clusters[name].token) for name in clusters}
        for name, kubeconfig in files.items():
            trust(kubeconfig, clusters[name].authority)
        config = configuration(namespace, controllers={"resourceClass": f"c{uuid.uuid4().hex[:8]}"})
        agent = AgentProcess(config, kubeconfig=files["source"], target_kubeconfig=files["target"])
        webhooks = WebhookProcess(
            {"systemComponentsConfig": {"enabled": True, "nodeSelector": {}}}, kubeconfig=files["webhooks"]
        )
        for process in agent, webhooks:
            stack.enter_context(process)
            await asyncio.to_thread(process.wait_until_ready)
        rig = Rig(cluster, namespace, Named(config["controllers"]["resourceClass"]), agent)  # type: ignore[arg-type]

        def data() -> object:
            with contextlib.suppress(NotFound):
                return target_cluster.api.get(in_target)["data"]
            return None

        await asyncio.to_thread(rig.write, "m", config_map("c", {"at": "first"}))
        await asyncio.to_thread(eventually, lambda: data() == {"at": "first"}, "the object in the target")

        for name, proxy in proxies.items():
            authority = Authority.create(f"new for {name}")
            trust(files[name], authority)
            proxy.log.clear()
            await proxy.serve_as(authority)
        await asyncio.to_thread(rig.write, "m", config_map("c", {"at": "second"}))
        await asyncio.to_thread(eventually, lambda: data() == {"at": "second"}, "a change under the new CAs")
        target_cluster.api.patch(in_target, {"data": {"at": "by hand"}})
        await asyncio.to_thread(eventually, lambda: data() == {"at": "second"}, "a change in the target to be seen")
        await asyncio.to_thread(
            eventually,
            lambda: any(each.request.watch and each.answer == 200 for each in proxies["webhooks"].log),
            "a watch",
        )


class Named:
    """What a rig has to know of its agent."""

    def __init__(self, resource_class: str) -> None:
        self.resource_class = resource_class
