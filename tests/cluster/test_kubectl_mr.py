"""Commands of `kubectl mr` against a real API server, beyond what its page shows; test_kubectl_mr_docs.py has the rest."""

import base64
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import CLASS
from kit.kubelet import kubelet
from kit.managed_resources import install_crd
from kit.objects import CONTAINERS, conditions, config_map, deployment, managed_resource, obj, reference, secret
from kit.plugins import Mr, runner
from kit.rig import Rig
from kube.objects import Object, annotations, is_deleting
from kube.resources import LEASES, SECRETS


@pytest.fixture
def mr(cluster: Cluster, namespace: str) -> Mr:
    """Runs a command in the test's namespace; without an agent, unless `rig` is requested as well."""
    install_crd(cluster)
    return runner(cluster, namespace)


_WRITTEN = {
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "lastUpdateTime": "2026-01-01T00:00:00Z",
    "reason": "R",
    "message": "m",
}
"""Fields of a condition that API servers require."""


def managed(name: str) -> Object:
    return managed_resource(name, spec={"class": "unused", "secretRefs": []})


@pytest.fixture
def many(cluster: Cluster, namespace: str, mr: Mr) -> Iterator[int]:
    """More than fit on a page."""
    count = 260
    path = MANAGED_RESOURCES.path(namespace=namespace)
    for number in range(count):
        cluster.api.create(path, managed(f"m{number:03}"))
    yield count
    cluster.api.delete(path)


def test_get_reads_page_by_page(many: int, mr: Mr, audit: Audit) -> None:
    table = mr("get", "--no-headers").stdout.splitlines()
    assert [line.split()[0] for line in table] == [f"m{number:03}" for number in range(many)]
    listed = json.loads(mr("get", "-o", "json").stdout)
    assert (listed["kind"], len(listed["items"])) == ("List", many)
    assert len(list(yaml.safe_load_all(mr("get", "-o", "yaml").stdout))) == many
    assert len(mr("get", "-o", "name").stdout.splitlines()) == many
    assert mr("get", "m007", "-o", "name").stdout == "managedresource.resources.gardener.cloud/m007\n"
    assert json.loads(mr("get", "m007", "-o", "json").stdout)["metadata"]["name"] == "m007"
    assert len(mr("get", "--status", "pending", "--no-headers").stdout.splitlines()) == many
    nothing = mr("get", "--status", "failed")
    assert (nothing.stdout, nothing.stderr) == ("", "◎ no ManagedResources\n")


def test_a_name_that_does_not_exist_is_an_error_with_similar_ones(cluster: Cluster, namespace: str, mr: Mr) -> None:
    cluster.api.create(MANAGED_RESOURCES.path(namespace=namespace), managed("storefront"))
    for command in (["describe"], ["tree"], ["diff"], ["wait"], ["suspend", "-r", "x"], ["reconcile"]):
        result = mr(command[0], "storefrnt", *command[1:], code=2 if command == ["diff"] else 1)
        assert f"ManagedResource {namespace}/storefrnt not found" in result.stderr
        assert f"did you mean {namespace}/storefront?" in result.stderr


def test_names_are_completed_by_the_shell(cluster: Cluster, namespace: str, mr: Mr) -> None:
    for name in ("shop-a", "shop-b", "other"):
        cluster.api.create(MANAGED_RESOURCES.path(namespace=namespace), managed(name))
    words = f"kubectl-mr describe -n {namespace} shop"
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "_KUBECTL_MR_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": "4",
    }
    code = "from kubectl.mr.__main__ import app; app(prog_name='kubectl-mr')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.split() == ["plain,shop-a", "plain,shop-b"], done.stderr


def test_content_that_does_not_fit_into_a_secret_is_split_into_several(
    cluster: Cluster, namespace: str, mr: Mr, tmp_path: Path
) -> None:
    noise = random.Random(1)
    documents = [config_map(f"c{i}", {"x": noise.randbytes(200_000).hex()}) for i in range(7)]
    file = tmp_path / "large.json"
    file.write_text("---\n".join(map(yaml.safe_dump, documents)))
    made = mr("encode", str(file), "--name", "large", "--immutable")
    secrets = list(yaml.safe_load_all(made.stdout))
    assert len(secrets) >= 2
    for each in secrets:
        assert each["immutable"] is True
        assert len(base64.b64decode(each["data"]["objects.yaml.br"])) <= 1 << 20
        cluster.api.create(SECRETS.path(namespace=namespace), each)
    names = []
    for each in secrets:
        decoded = mr("decode", each["metadata"]["name"], "-o", "json")
        names += [item["metadata"]["name"] for item in json.loads(decoded.stdout)["items"]]
    assert names == [f"c{i}" for i in range(7)]


def test_objects_of_another_cluster_are_not_compared_with_this_one(cluster: Cluster, namespace: str, mr: Mr) -> None:
    """The agent has applied them, to a cluster that is not named."""
    cluster.api.create(
        SECRETS.path(namespace=namespace), secret("far", {"o.yaml": yaml.safe_dump(config_map("far", {"a": "b"}))})
    )
    path = MANAGED_RESOURCES.path(namespace=namespace)
    spec = {"class": "unused", "secretRefs": [{"name": "far"}]}
    cluster.api.create(path, managed_resource("far", spec=spec))
    listed = [reference("v1 ConfigMap", f"{namespace}/far")]
    cluster.api.patch(f"{path}/far/status", {"status": {"resources": listed, "conditions": conditions(**_WRITTEN)}})
    for command, code in (("tree", 1), ("diff", 2)):
        refused = mr(command, "far", code=code)
        assert refused.stdout == ""
        assert (
            f"none of the objects exists in this cluster, but ManagedResource {namespace}/far lists" in refused.stderr
        )
        assert "set its kubeconfig by --target-kubeconfig" in refused.stderr
    named = ("--target-kubeconfig", str(cluster.kubeconfig))
    assert "ConfigMap/" in mr("tree", "far", *named).stdout
    assert "would be created" in mr("diff", "far", *named, code=1).stdout


def test_suspend_reports_who_and_why_and_resume_forgets_it(cluster: Cluster, namespace: str, mr: Mr) -> None:
    path = MANAGED_RESOURCES.path(namespace=namespace)
    cluster.api.create(path, managed("shop"))
    ann = cluster.kubeconfig_for("ann", ["system:masters"])
    mr("suspend", "shop", "--reason", "a test", kubeconfig=ann)
    notes = annotations(cluster.api.get(f"{path}/shop"))
    assert notes["resources.gardener.cloud/ignore"] == "true"
    assert notes["resources.gardener.cloud/ignored-by"] == "ann"
    assert notes["resources.gardener.cloud/ignore-reason"] == "a test"
    assert "by ann since" in mr("get", "shop").stdout
    assert "is suspended" in mr("reconcile", "shop", code=1).stderr
    assert "it is suspended" in mr("wait", "shop", code=1).stderr
    mr("resume", "shop", "--no-wait")
    assert annotations(cluster.api.get(f"{path}/shop")) == {}
    assert "was not suspended" in mr("resume", "shop", "--no-wait").stderr


def test_all_are_suspended_and_resumed_at_once(cluster: Cluster, namespace: str, mr: Mr) -> None:
    path = MANAGED_RESOURCES.path(namespace=namespace)
    for name in ("one", "two"):
        cluster.api.create(path, managed(name))
    mr("suspend", "one", "-r", "the first reason")
    shown = mr("suspend", "--all", "-r", "the second reason").stderr
    assert f"ManagedResource {namespace}/one is suspended already, by " in shown
    assert annotations(cluster.api.get(f"{path}/one"))["resources.gardener.cloud/ignore-reason"] == "the first reason"
    assert annotations(cluster.api.get(f"{path}/two"))["resources.gardener.cloud/ignore-reason"] == "the second reason"
    assert mr("reconcile", "--all").stderr.count("is suspended: left out") == 2
    mr("resume", "--all", "--no-wait")
    assert annotations(cluster.api.get(f"{path}/one")) == annotations(cluster.api.get(f"{path}/two")) == {}
    mr("reconcile", "--all", "--no-wait")
    for name in ("one", "two"):
        assert annotations(cluster.api.get(f"{path}/{name}")) == {"gardener.cloud/operation": "reconcile"}


def test_a_suspension_needs_no_reason(cluster: Cluster, namespace: str, mr: Mr) -> None:
    path = MANAGED_RESOURCES.path(namespace=namespace)
    former = {"resources.gardener.cloud/ignore-reason": "of an earlier suspension"}
    cluster.api.create(path, {**managed("shop"), "metadata": {"name": "shop", "annotations": former}})
    mr("suspend", "shop")
    assert set(annotations(cluster.api.get(f"{path}/shop"))) == {
        "resources.gardener.cloud/ignore",
        "resources.gardener.cloud/ignored-by",
        "resources.gardener.cloud/ignored-since",
    }
    assert re.search(r"by \S+ since \S+$", mr("get", "shop").stdout.rstrip())


def test_check_finds_the_lease_of_an_agent_in_another_namespace(cluster: Cluster, namespace: str, mr: Mr) -> None:
    resource_class = f"c-{namespace}"
    cluster.api.create(
        MANAGED_RESOURCES.path(namespace=namespace), managed_resource("m", spec={"class": resource_class})
    )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    meta = {"name": f"its-own-{namespace}", "annotations": {CLASS: resource_class}}
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "renewTime": now}
    leases = LEASES.path(namespace="default")
    cluster.api.create(leases, {"metadata": meta, "spec": spec})
    try:
        shown = mr("check", code=None).stdout
        assert f"✔ an agent leads in namespace default, for the class {resource_class}" in shown
        assert "an agent is about to look at them" in shown
        assert "no agent has a Lease" not in shown
    finally:
        cluster.api.delete(f"{leases}/{meta['name']}")


def test_another_client_is_impersonated(cluster: Cluster, namespace: str, mr: Mr) -> None:
    cluster.api.create(MANAGED_RESOURCES.path(namespace=namespace), managed("shop"))
    refused = mr("get", "--as", "jane", "--as-group", "one", "--as-group", "two", code=1)
    assert 'User "jane" cannot list' in refused.stderr
    assert "shop" in mr("get", "--as", "jane", "--as-group", "one", "--as-group", "system:masters").stdout


def test_a_user_without_permissions_gets_the_refusal(cluster: Cluster, namespace: str, mr: Mr) -> None:
    eve = cluster.kubeconfig_for("eve")
    result = mr("get", code=1, kubeconfig=eve)
    assert 'User "eve" cannot list resource "managedresources"' in result.stderr
    assert "► request this permission" in result.stderr
    checked = mr("check", code=1, kubeconfig=eve)
    assert "you may not list managedresources, patch managedresources, get secrets" in checked.stdout
    assert "? ManagedResources: you may not read them" in checked.stdout


def test_an_api_server_that_does_not_answer_is_an_error_in_words(tmp_path: Path, mr: Mr, cluster: Cluster) -> None:
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document))
    assert "► is the API server reachable" in mr("get", code=1, kubeconfig=path).stderr


def test_create_refuses_what_exists_and_updates_on_demand(cluster: Cluster, namespace: str, mr: Mr) -> None:
    one, two = (yaml.safe_dump(config_map(name)) for name in ("one", "two"))
    mr("create", "made", "-f", "-", "--class", "unused", stdin=one)
    assert "exists already" in mr("create", "made", "-f", "-", stdin=two, code=1).stderr
    mr("create", "made", "-f", "-", "--class", "unused", "--update", stdin=two)
    assert "name: two" in mr("decode", "made").stdout
    unfit = mr("create", "made", "-f", "-", "--immutable", "--update", "--class", "unused", stdin=one)
    assert f"Secret {namespace}/made is not named any more" in unfit.stderr
    found = cluster.api.get(MANAGED_RESOURCES.path(namespace=namespace, name="made"))
    [reference] = found["spec"]["secretRefs"]
    assert reference["name"].startswith("made-")
    assert list(annotations(found).values()) == [reference["name"]]
    printed = mr("create", "other", "-f", "-", "--dry-run", "client", stdin=one)
    assert [obj["kind"] for obj in yaml.safe_load_all(printed.stdout)] == ["Secret", "ManagedResource"]
    assert mr("get", "-o", "name").stdout.count("\n") == 1


# --- with an agent


def test_tree_trace_and_diff_for_programs(rig: Rig, mr: Mr) -> None:
    rig.write("shop", deployment("storefront", replicas=1), config_map("texts"))
    mr("wait", "shop", "--timeout", "60s")
    [secret] = json.loads(mr("tree", "shop", "-o", "json").stdout)["children"]
    by_name = {child["name"]: child for child in secret["children"]}
    found = by_name[f"Deployment/{rig.namespace}/storefront"]
    assert found["health"] == "Healthy"
    pod = found["children"][0]["children"][0]["name"]
    trace = json.loads(mr("trace", pod, "-o", "json").stdout)
    assert [obj["name"].partition("/")[0] for obj in trace["objects"]] == ["Pod", "ReplicaSet", "Deployment"]
    assert trace["managedResource"] == f"{rig.namespace}/shop"
    assert trace["secret"].startswith("shop, objects.yaml, index ")
    assert json.loads(mr("diff", "shop", "-o", "json").stdout) == []
    assert "no differences" in mr("diff", "shop").stderr
    unmanaged = mr("trace", "serviceaccount/default", code=1)
    assert "no ManagedResource" in unmanaged.stdout


def test_diff_shows_secrets_of_the_manifest_without_their_values(rig: Rig, mr: Mr) -> None:
    hidden = secret("hidden", stringData={"a": "b1gsecret"})
    rig.write("shop", hidden, config_map("extra"))
    mr("wait", "shop", "--timeout", "60s")
    with rig.asleep():
        changed = base64.b64encode(b"an0therone").decode()
        rig.patch("Secret", "hidden", {"data": {"a": changed}, "metadata": {"labels": {"x": "y"}}})
        rig.write_secret("shop", hidden)
        shown = mr("diff", "shop", code=1).stdout
        assert f"Secret/{rig.namespace}/hidden would be changed" in shown
        assert f"ConfigMap/{rig.namespace}/extra would be removed" in shown
        everything = shown + mr("diff", "shop", "-o", "json", code=1).stdout
        for value in ("b1gsecret", "an0therone", changed, base64.b64encode(b"b1gsecret").decode()):
            assert value not in everything


def test_objects_of_another_cluster_are_read_there(rig: Rig, mr: Mr) -> None:
    rig.write("shop", config_map("one"))
    mr("wait", "shop", "--timeout", "60s")
    eve = rig.cluster.kubeconfig_for("eve")
    shown = mr("describe", "shop", "--target-kubeconfig", str(eve)).stdout
    assert f"ConfigMap/{rig.namespace}/one   Unknown   you may not read it" in shown
    assert "you may not read it" not in mr("describe", "shop").stdout


def test_events_of_objects_are_shown_on_demand(rig: Rig, mr: Mr) -> None:
    rig.write("shop", deployment("storefront", replicas=1))
    mr("wait", "shop", "--timeout", "60s")
    rig.until(lambda: "ScalingReplicaSet" in mr("events", "shop", "--objects").stdout, "an Event of the Deployment")
    assert "Deployment/storefront" in mr("events", "shop", "--objects").stdout
    assert "ScalingReplicaSet" not in mr("events", "shop").stdout
    assert mr("events", "shop", "-o", "json").stdout.startswith("{")


def test_watching_shows_what_changes_until_it_is_ended(cluster: Cluster, namespace: str, mr: Mr) -> None:
    path = MANAGED_RESOURCES.path(namespace=namespace)
    cluster.api.create(path, managed("first"))
    command = [sys.executable, "-m", "kubectl.mr", "get", "-w", "-n", namespace]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("NAME    STATUS ")
            assert process.stdout.readline().startswith("first   Pending ")
            cluster.api.create(path, managed("second"))
            assert process.stdout.readline().startswith("second   Pending ")
            ignored = {"metadata": {"annotations": {"resources.gardener.cloud/ignore": "true"}}}
            cluster.api.patch(f"{path}/first", ignored)
            assert process.stdout.readline().startswith("first    Suspended ")
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()


def test_on_a_terminal_there_are_colors_and_progress_unless_unwanted(rig: Rig, mr: Mr) -> None:
    rig.write("shop", config_map("one"))
    mr("wait", "shop", "--timeout", "60s")
    shown = on_a_terminal(rig, "get")
    assert "\033[32mReady\033[0m" in shown
    assert "\033[" not in on_a_terminal(rig, "get", NO_COLOR="1")
    rig.patch("ConfigMap", "one", {"metadata": {"finalizers": ["example.com/hold"]}})
    rig.delete("ManagedResource", "shop")
    try:
        rig.until(lambda: is_deleting(rig.get("ConfigMap", "one")), "the agent to begin")
        waited = on_a_terminal(rig, "wait", "shop", "--for", "deleted", "--timeout", "2s", NO_COLOR="1")
        assert "waits for example.com/hold" in waited
        assert "not deleted after 2 s" in waited
    finally:
        rig.patch("ConfigMap", "one", {"metadata": {"finalizers": None}})


def on_a_terminal(rig: Rig, *arguments: str, **environment: str) -> str:
    """What a person sees."""
    master, slave = os.openpty()
    command = [sys.executable, "-m", "kubectl.mr", *arguments, "-n", rig.namespace]
    base = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    known = {**base, "TERM": "xterm", "COLUMNS": "160", "KUBECONFIG": str(rig.cluster.kubeconfig), **environment}
    with subprocess.Popen(command, env=known, stdin=slave, stdout=slave, stderr=slave):
        os.close(slave)
        seen = b""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not part:
                break
            seen += part
    os.close(master)
    return seen.decode()


def test_all_commands_count_the_same_objects_and_know_which_have_no_namespace(rig: Rig, mr: Mr) -> None:
    group = f"{rig.namespace}.example.com"
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    kind = {"group": group, "scope": "Cluster", "names": names, "versions": [version]}
    definition = obj("apiextensions.k8s.io/v1 CustomResourceDefinition", f"things.{group}", spec=kind)
    thing = obj(f"{group}/v1 Thing", "one", namespace="")
    # It is refused, so the pass does not end.
    reference = {"apiGroup": "", "kind": "", "name": ""}
    binding = obj("rbac.authorization.k8s.io/v1 ClusterRoleBinding", rig.namespace, namespace="", roleRef=reference)
    objects = [definition, thing, binding, config_map("c", namespace=rig.namespace)]
    text = yaml.safe_dump_all(objects)
    before = mr("diff", "shop", "-f", "-", stdin=text, code=2).stdout
    assert "► Thing/one would be created" in before
    created = mr("create", "shop", "-f", "-", "--class", rig.agent.resource_class, stdin=text)
    assert "with 4 objects" in created.stderr
    rig.until(lambda: "Failed" in mr("get", "shop").stdout, "it to fail")
    row = mr("get", "shop", "--no-headers").stdout.split()
    assert row[5] == "4"
    assert "Objects (4):" in mr("describe", "shop").stdout
    assert sum(json.loads(mr("stats", "-o", "json").stdout)["objects"].values()) == 4
    rig.until(lambda: "Thing/one Healthy" in mr("tree", "shop").stdout, "the kind to be served")
    shown = {name: mr(name, "shop", code=None).stdout for name in ("get", "describe", "tree", "diff", "events")}
    assert all(f"ClusterRoleBinding/{rig.namespace}" in text for name, text in shown.items() if name != "get")
    assert "ClusterRoleBinding/default/" not in "".join(shown.values())
    assert "Thing/default/" not in shown["describe"] + shown["tree"] + shown["diff"]
    assert "managed-by" not in shown["diff"]  # the value of this label is known before the first pass has ended


def test_objects_are_counted_and_not_documents(mr: Mr) -> None:
    several = "\n".join(json.dumps(config_map(name, namespace="default")) for name in ("one", "two", "three"))
    created = mr("create", "several", "-f", "-", "--class", "unused", stdin=several)
    assert "with 3 objects" in created.stderr
    items = [config_map(name, namespace="default") for name in ("one", "two")]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    assert "with 2 objects" in mr("create", "listed", "-f", "-", "--class", "unused", stdin=listed).stderr


def test_a_job_that_was_removed_when_it_had_finished_is_completed(rig: Rig, mr: Mr) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}
    job = obj("Job", "job", spec={"completions": 0, "ttlSecondsAfterFinished": 0, "template": template})
    rig.apply("shop", job, config_map("c"))
    rig.until_gone("Job", "job")
    rig.until(lambda: "Ready" in mr("get", "shop").stdout, "it to be ready")
    assert re.search(rf"Job/{rig.namespace}/job +Completed", mr("describe", "shop").stdout)
    assert f"Job/{rig.namespace}/job Completed" in mr("tree", "shop").stdout
    assert "✔ shop is ready" in mr("wait", "shop", "--timeout", "5s").stderr
    assert "no differences" in mr("diff", "shop").stderr
    # As a preview of the same manifest alone, and of another one.
    stored = json.loads(mr("decode", "shop", "-o", "json").stdout)["items"]
    changed = json.dumps(next(each for each in stored if each["kind"] == "Job"))
    shown = mr("diff", "shop", "-f", "-", stdin=changed, code=1).stdout
    assert "Job/" not in shown
    assert f"ConfigMap/{rig.namespace}/c would be removed" in shown
    changed = changed.replace('"completions": 0', '"completions": 1')
    assert f"Job/{rig.namespace}/job would be created" in mr("diff", "shop", "-f", "-", stdin=changed, code=1).stdout


def test_the_cause_of_what_is_unhealthy_is_named(rig: Rig, mr: Mr) -> None:
    pods = deployment("web", replicas=1)
    pods["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/there-is": "none"}
    service = obj("Service", "lb", spec={"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "web"}})
    refused = deployment("refused", replicas=1)
    refused["spec"]["template"]["spec"]["serviceAccountName"] = "absent"
    rig.write("shop", pods, service, refused)

    def is_explained() -> bool:
        shown = mr("describe", "shop").stdout
        return "is not scheduled: 0/" in shown and 'serviceaccount "absent" not found' in shown

    rig.until(is_explained, "the causes to be known")
    shown = mr("describe", "shop").stdout
    assert re.search(rf"Deployment/{rig.namespace}/web .*; Pod/{rig.namespace}/web-\S+ is not scheduled: 0/", shown)
    assert re.search(rf"Deployment/{rig.namespace}/refused .*; \S+/refused\S*: FailedCreate: ", shown)
    assert "it has no load balancer" in shown
    waited = mr("wait", "shop", "--timeout", "1s", code=1).stderr
    assert "is not scheduled: 0/" in waited


def test_the_last_line_of_a_container_that_crashed_is_shown(cluster: Cluster, rig: Rig, mr: Mr) -> None:
    crashed = {"name": "c", "ready": False, "restartCount": 3, "image": "i", "imageID": ""}
    crashed |= {
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
    }
    with kubelet(cluster, {"c": "starting\npanic: no such table: users\n"}) as node:
        web = deployment("web", replicas=1)
        web["spec"]["template"]["spec"]["nodeName"] = node
        rig.apply("shop", web)
        rig.until(lambda: rig.list("Pod"), "a pod")
        (pod,) = rig.list("Pod")
        status = {"phase": "Running", "containerStatuses": [crashed]}
        rig.patch("Pod", pod["metadata"]["name"], {"status": status}, subresource="status")
        line = "; its last line: panic: no such table: users"
        rig.until(lambda: line in mr("describe", "shop").stdout, "the last line")
        shown = next(each for each in mr("describe", "shop").stdout.splitlines() if line in each)
        assert f"Deployment/{rig.namespace}/web" in shown
        assert "CrashLoopBackOff" in shown
