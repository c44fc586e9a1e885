"""`kubectl mr logs` finds the agent's pods by its Lease. No kubelet runs here: what it would answer is recorded."""

import asyncio
import json
from pathlib import Path

from click.testing import CliRunner, Result

from devcluster.cluster import Cluster
from devcluster.testing.faults import Foreign, Rule
from gardener.keys import CLASS
from kit.managed_resources import install_crd
from kit.objects import managed_resource, obj, pod
from kit.proxied import proxy_to
from kit.world import Place
from kube.objects import Object
from kubectl.mr.__main__ import app


def entry(time: str, message: str, about: str, namespace: str) -> str:
    named = {"namespace": namespace, "name": about}
    return json.dumps({"level": "info", "ts": time, "msg": message, "ManagedResource": named}) + "\n"


def lease(holder: str, resource_class: str) -> Object:
    spec = {"holderIdentity": f"{holder}_0c7ad1f4-5a5e-4d0b-9a7e-9a3b1f1c2d3e"}
    return obj("coordination.k8s.io/v1 Lease", holder, spec=spec, annotations={CLASS: resource_class})


async def test_lines_about_it_come_from_the_leader_and_its_replicas(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    install_crd(cluster)
    place = Place(cluster, namespace)
    place.create(managed_resource("shop", spec={"class": "mine"}))
    for name in ("agent-a", "agent-b"):
        place.create(pod(name, labels={"pod-template-hash": "h"}))
    place.create(pod("stranger", labels={"pod-template-hash": "h2"}))
    place.create(lease("agent-a", "mine"))
    place.create(lease("stranger", "yours"))
    logs = {
        "agent-a": entry("3", "third", "shop", namespace) + entry("4", "not this", "other", namespace) + "no entry\n",
        "agent-b": entry("1", "first", "shop", namespace) + entry("2", "second", "shop", namespace),
    }
    async with proxy_to(cluster) as proxy:
        proxy.write_kubeconfig(tmp_path / "kubeconfig", token=cluster.token)
        for name, text in logs.items():
            answer = Foreign(name=name, code=200, content_type="text/plain", text=text)
            proxy.rules.add(Rule(fault=answer, path=f"/pods/{name}/log$"))

        async def shown(*arguments: str) -> Result:
            environment = {"KUBECONFIG": str(tmp_path / "kubeconfig"), "NO_COLOR": "1"}
            command = ["logs", "shop", "-n", namespace, *arguments]
            return await asyncio.to_thread(CliRunner().invoke, app, command, env=environment)

        every = await shown()
        assert every.stdout == "1 info first\n2 info second\n3 info third\n", every.output
        assert (await shown("--tail", "1")).stdout == "3 info third\n"
        assert (await shown("--raw", "--tail", "1")).stdout == entry("3", "third", "shop", namespace)
        place.delete("Pod", "agent-a")
        gone = await shown()
        assert gone.exit_code == 1
        assert f"the agent {namespace}/agent-a is not a pod of this cluster" in gone.stderr


async def test_what_comes_is_followed_and_shown_once(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    install_crd(cluster)
    place = Place(cluster, namespace)
    place.create(managed_resource("shop", spec={"class": "mine"}))
    for name in ("agent-a", "agent-b"):
        place.create(pod(name, labels={"pod-template-hash": "h"}))
    place.create(lease("agent-a", "mine"))
    before = {
        "agent-a": entry("1", "first", "shop", namespace) + entry("2", "second", "shop", namespace),
        "agent-b": "",
    }
    # The stream begins some seconds ago, and ends with the pod.
    since = {
        "agent-a": entry("2", "second", "shop", namespace)
        + entry("3", "third", "shop", namespace)
        + entry("4", "not this", "other", namespace),
        "agent-b": entry("5", "fifth", "shop", namespace),
    }
    async with proxy_to(cluster) as proxy:
        proxy.write_kubeconfig(tmp_path / "kubeconfig", token=cluster.token)
        for texts, query in ((since, "follow=true"), (before, "")):
            for name, text in texts.items():
                answer = Foreign(name=name, code=200, content_type="text/plain", text=text)
                proxy.rules.add(Rule(fault=answer, path=f"/pods/{name}/log$", query=query))
        environment = {"KUBECONFIG": str(tmp_path / "kubeconfig"), "NO_COLOR": "1"}
        command = ["logs", "shop", "-n", namespace, "-f"]
        result = await asyncio.to_thread(CliRunner().invoke, app, command, env=environment)
    assert result.exit_code == 0, result.output
    first, second, *others = result.stdout.splitlines()
    assert (first, second) == ("1 info first", "2 info second")
    assert sorted(others) == ["3 info third", "5 info fifth"]


async def test_an_agent_that_is_not_found_is_an_error(cluster: Cluster, namespace: str) -> None:
    install_crd(cluster)
    Place(cluster, namespace).create(managed_resource("shop", spec={"class": f"unused-{namespace}"}))
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "NO_COLOR": "1"}
    command = ["logs", "shop", "-n", namespace, "--agent-namespace", namespace]
    result = await asyncio.to_thread(CliRunner().invoke, app, command, env=environment)
    assert result.exit_code == 1
    assert "no agent has a Lease for its class" in result.stderr
