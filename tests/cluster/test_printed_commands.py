"""Every command that a program prints works as printed, from any namespace, against a real API server.

`RUN` fills in placeholders; its commands run from top to bottom, in a cluster that serves the kinds of a garden and of a
seed, with objects whose annotations and labels have other values already. `LEFT_OUT` names the test that runs a command
with what it needs, or the reason why none can. A program that prints a new command needs a line in one of them.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import pytest
import yaml

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener import keys
from gardener.api import garden
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.api.seed_definitions import DEFINITIONS, Stage, custom_resource_definitions
from kit.garden_objects import garden_object
from kit.kinds import wait_until_served
from kit.managed_resources import install_crd
from kit.objects import config_map, deployment, managed_resource, obj, secret
from kit.printed_commands import printed
from kube.objects import Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from localprovider.runner.deployments import SIMULATED

pytestmark = pytest.mark.timeout(900)

SEED_KINDS = [each.resource for each in chain.from_iterable(DEFINITIONS.values())]
PROJECT = Path(__file__).parents[2]
SEED = "shoot--dev--s"
_SHOOT, _OPERATION = "kubectl annotate shoot s -n garden-dev --overwrite", keys.OPERATION
_PATCH = '{"spec":{"hibernation":{"enabled":true}}}'
_NO_API_SERVER_OF_ITS_OWN = "the API server of a Shoot: test_demo_of_garden.py runs it with one"

RUN: Mapping[str, Sequence[str]] = {
    # kubectl gardener
    "kubectl annotate deployment {name} -n {namespace} --overwrite {SIMULATED}=true": [
        f"kubectl annotate deployment kube-apiserver -n {SEED} --overwrite {SIMULATED}=true"
    ],
    "kubectl annotate shoot {own} rotate-ca-complete": [f"{_SHOOT} {_OPERATION}=rotate-ca-complete"],
    "kubectl annotate shoot {own} rotate-ca-start": [f"{_SHOOT} {_OPERATION}=rotate-ca-start"],
    "kubectl annotate shoot {own} {OPERATION_RECONCILE}": [f"{_SHOOT} {_OPERATION}=reconcile"],
    "kubectl annotate shoot {shoot} {OPERATION_MAINTAIN}": [f"{_SHOOT} {_OPERATION}=maintain"],
    "kubectl annotate shoot {shoot} {OPERATION_RECONCILE}": [f"{_SHOOT} {_OPERATION}=reconcile"],
    "kubectl annotate shoot {shoot} {OPERATION_RETRY}": [f"{_SHOOT} {_OPERATION}=retry"],
    "kubectl annotate {NAMESPACES} {Key} {SKIP_STALE_CHECK}=true": [
        f"kubectl annotate namespace garden-dev --overwrite {keys.SKIP_STALE_CHECK}=true"
    ],
    "kubectl annotate {SEEDS} {key} {CORDONED}=true": [f"kubectl annotate seed thing --overwrite {keys.CORDONED}=true"],
    "kubectl annotate {SHOOTS} {key} {CONFIRM_DELETION}=true": [f"{_SHOOT} {keys.CONFIRM_DELETION}=true"],
    "kubectl annotate {SHOOTS} {key} {OPERATION}={operation}": [f"{_SHOOT} {_OPERATION}=maintain"],
    "kubectl annotate {SHOOTS} {key} {SHOOT_EXPIRATION}-": [f"{_SHOOT} {keys.SHOOT_EXPIRATION}-"],
    "kubectl annotate {SHOOTS} {key} {SHOOT_IGNORE}-": [f"{_SHOOT} {keys.SHOOT_IGNORE}-"],
    "kubectl annotate {SHOOTS} {key} {after}": [f"{_SHOOT} {keys.SHOOT_EXPIRATION}=2030-01-01T00:00:00Z"],
    "kubectl annotate {SHOOTS} {own} {OPERATION}={operation}": [f"{_SHOOT} {_OPERATION}=rotate-ca-start"],
    "kubectl delete {MANAGED_SEEDS} {managed}": ["kubectl delete managedseed doomed -n garden"],
    "kubectl delete {ROLE_BINDINGS} {key}": ["kubectl delete rolebinding eve -n garden-dev"],
    "kubectl delete {SERVICE_ACCOUNTS} {}": ["kubectl delete serviceaccount robot -n garden-dev"],
    "kubectl describe KIND NAME": ["kubectl describe node node-0"],
    "kubectl describe deployment gardener-resource-manager -n {seed}": [
        f"kubectl describe deployment gardener-resource-manager -n {SEED}"
    ],
    "kubectl describe deployment kube-apiserver -n {seed}": [f"kubectl describe deployment kube-apiserver -n {SEED}"],
    "kubectl describe deployment {name} -n {namespace}": [f"kubectl describe deployment kube-apiserver -n {SEED}"],
    "kubectl describe etcd {name} -n {namespace}": [f"kubectl describe etcd -n {SEED}"],
    "kubectl describe lease {name} -n {namespace}": [f"kubectl describe lease held -n {SEED}"],
    "kubectl describe namespace {name}": [f"kubectl describe namespace {SEED}"],
    "kubectl describe node": ["kubectl describe node"],
    "kubectl describe node {name}": ["kubectl describe node node-0"],
    "kubectl describe service {name} -n {namespace}": [f"kubectl describe service kube-apiserver -n {SEED}"],
    "kubectl describe {NAMESPACES} {Key}": ["kubectl describe namespace garden-dev"],
    "kubectl describe {PROJECTS} {key}": ["kubectl describe project thing"],
    "kubectl describe {SEEDS} {key}": ["kubectl describe seed thing"],
    "kubectl describe {SHOOTS} {key}": ["kubectl describe shoot s -n garden-dev"],
    "kubectl describe {kind} {name} -n {namespace}": [
        f"kubectl describe worker thing -n {SEED}",
        f"kubectl describe infrastructure thing -n {SEED}",
    ],
    "kubectl describe {kind} {name} -n {seed}": [f"kubectl describe deployment kube-apiserver -n {SEED}"],
    "kubectl describe {kind} {name}{of}": [f"kubectl describe worker thing -n {SEED}"],
    "kubectl describe {resource} {first}": ["kubectl describe backupbucket thing"],
    "kubectl describe {resource} {key}": ["kubectl describe controllerinstallation thing"],
    "kubectl describe {resource} {own}": ["kubectl describe cloudprofile thing"],
    "kubectl edit {kind} {name}": ["kubectl edit validatingwebhookconfiguration hook"],
    "kubectl gardener why backupentry {name} -n {namespace}": ["kubectl gardener why backupentry thing -n garden-dev"],
    "kubectl gardener reconcile {key}": ["kubectl gardener reconcile s -n garden-dev || test $? = 1"],
    "kubectl gardener retry {key}": ["kubectl gardener retry s -n garden-dev || test $? = 1"],
    "kubectl gardener wait {key}": ["kubectl gardener wait s -n garden-dev --timeout 1s || test $? = 1"],
    "kubectl gardener {verb} {key}": [
        "kubectl gardener hibernate s -n garden-dev",
        "kubectl gardener wake s -n garden-dev",
    ],
    "kubectl gardener why project {project}": ["kubectl gardener why project thing"],
    "kubectl gardener why shoot NAME -n NAMESPACE": ["kubectl gardener why shoot s -n garden-dev"],
    "kubectl gardener why {MANAGED_SEEDS} {replica}": ["kubectl gardener why managedseed thing -n garden"],
    "kubectl gardener why {SEEDS} {Key}": ["kubectl gardener why seed thing"],
    "kubectl gardener why {SEEDS} {seed}": ["kubectl gardener why seed thing"],
    "kubectl gardener why {SHOOTS} {first}": ["kubectl gardener why shoot s -n garden-dev"],
    "kubectl gardener why {SHOOTS} {key}": ["kubectl gardener why shoot s -n garden-dev --seed-kubeconfig $KUBECONFIG"],
    "kubectl gardener why {SHOOTS} {own}": ["kubectl gardener why shoot s -n garden-dev"],
    "kubectl gardener why {SHOOTS} {replica}": ["kubectl gardener why shoot s -n garden-dev"],
    "kubectl gardener why {SHOOTS} {}": ["kubectl gardener why shoot s -n garden-dev"],
    "kubectl gardener why {resource} {own}": ["kubectl gardener why shoot s -n garden-dev"],
    "kubectl get apiservice {_API_SERVICE}": ["kubectl get apiservice v1beta1.core.gardener.cloud"],
    "kubectl get backupbuckets": ["kubectl get backupbuckets"],
    "kubectl get controllerinstallations": ["kubectl get controllerinstallations"],
    "kubectl get deployment gardener-resource-manager -n {namespace}": [
        f"kubectl get deployment gardener-resource-manager -n {SEED}"
    ],
    "kubectl get {plural}{where}": ["kubectl get shoots -n garden-dev", "kubectl get seeds"],
    "kubectl get {plural}{}": ["kubectl get shoots -A", "kubectl get seeds"],
    "kubectl mss status {name} -n {namespace}": ["kubectl mss status thing -n garden-dev || test $? = 1"],
    # kubectl mr, and conditions
    "kubectl api-resources": ["kubectl api-resources"],
    "kubectl apply --server-side -f {DEFINITION}": [
        "kubectl apply --server-side -f manifests/crds/managedresources.resources.gardener.cloud.yaml"
    ],
    "kubectl apply -f manifests/crds": [
        "kubectl apply -f manifests/crds/managedresources.resources.gardener.cloud.yaml"
    ],
    "kubectl apply -k": ["kubectl apply --server-side -k manifests/crds"],
    "kubectl cluster-info": ["kubectl cluster-info"],
    "kubectl get -o yaml": ["kubectl get configmap kept -n shop -o yaml"],
    "kubectl mr check": ["kubectl mr check -n shop || test $? = 1"],
    "kubectl mr check -A": ["kubectl mr check -A || test $? = 1"],
    "kubectl mr create NAME -n NAMESPACE -f DIRECTORY --class {wanted_class} --wait": [
        "kubectl mr create made -n shop -f . --class none --wait --timeout 1s || test $? = 1"
    ],
    "kubectl mr decode SECRET -n NAMESPACE": ["kubectl mr decode goods -n shop"],
    "kubectl mr decode {name} -n {namespace}": [
        "kubectl mr decode goods -n shop | kubectl mr create goods -n shop --immutable --update -f -"
    ],
    "kubectl mr describe NAME -n NAMESPACE": ["kubectl mr describe goods -n shop"],
    "kubectl mr describe {name} -n {namespace}": ["kubectl mr describe goods -n shop"],
    "kubectl mr describe {name} -n {seed}": [f"kubectl mr describe shoot-core -n {SEED}"],
    "kubectl mr get -A": ["kubectl mr get -A"],
    "kubectl mr get -n {seed}": [f"kubectl mr get -n {SEED}"],
    "kubectl mr get -o wide": ["kubectl mr get -o wide -n shop"],
    "kubectl mr resume NAME -n NAMESPACE": ["kubectl mr resume goods -n shop --no-wait"],
    "kubectl mr tree": ["kubectl mr tree goods -n shop"],
    "kubectl mr {verb} {name} -n {namespace}": [
        *(f"kubectl mr {verb} goods -n shop" for verb in ("describe", "events", "history", "resume --no-wait")),
        "kubectl mr rollback goods -n shop --to 1 || test $? = 1",
    ],
    # admission
    "kubectl label seed {name} --overwrite {label}{}": [
        "kubectl label seed thing --overwrite a=c",
        "kubectl label seed thing --overwrite a-",
    ],
    "kubectl --namespace {namespace} label --overwrite {kind} {name} {label}": [
        "kubectl --namespace garden label --overwrite secrets backup usable-by.seed.gardener.cloud/meadow=true"
    ],
    "kubectl apply -f -": [".venv/bin/python -m webhooks garden validate --help"],
    # demos
    'kubectl -n shop patch configmap storefront --type=merge -p \'{"data":{"greeting":"Go away!"}}\'': [
        """kubectl -n shop patch configmap storefront --type=merge -p '{"data":{"greeting":"Go away!"}}'"""
    ],
    "kubectl -n shop scale deployment storefront --replicas=0": [
        "kubectl -n shop scale deployment storefront --replicas=0"
    ],
    "kubectl -n shop get all,configmaps": ["kubectl -n shop get all,configmaps"],
    "kubectl -n shop delete deployment storefront": ["kubectl -n shop delete deployment storefront"],
    "kubectl -n bakery get pods --output=yaml": ["kubectl -n bakery get pods --output=yaml"],
    "kubectl -n {_NAMESPACE} get events": ["kubectl -n shop get events"],
    "kubectl -n {_NAMESPACE} delete managedresource vouchers": ["kubectl -n shop delete managedresource vouchers"],
    "kubectl annotate seed {ROSEBED} {OPERATION}=renew-kubeconfig": [
        f"kubectl annotate seed rosebed {_OPERATION}=renew-kubeconfig"
    ],
    "kubectl annotate shoot tulip --namespace=garden-dev gardener.cloud/operation=reconcile": [
        "kubectl annotate shoot tulip --namespace=garden-dev gardener.cloud/operation=reconcile"
    ],
    "kubectl annotate shoot {_NAME} --namespace={_NAMESPACE} {CONFIRM_DELETION}=true": [
        f"kubectl annotate shoot tulip --namespace=garden-dev {keys.CONFIRM_DELETION}=true"
    ],
    "kubectl annotate shoot {name} --namespace={namespace} {OPERATION}=maintain": [
        f"kubectl annotate shoot wilting --namespace=garden-dev {_OPERATION}=maintain"
    ],
    "kubectl apply --filename={shown}": ["kubectl apply --filename=devcluster/demo/rose.yaml --dry-run=server"],
    "kubectl apply --filename=-": ["kubectl apply --filename=- < devcluster/demo/rose.yaml"],
    "kubectl auth can-i --list --namespace={project_namespace} --as=ann": [
        "kubectl auth can-i --list --namespace=garden-dev --as=ann"
    ],
    "kubectl delete cloudprofile {name}": ["kubectl delete cloudprofile doomed"],
    "kubectl explain shoot.spec --recursive": ["kubectl explain shoot.spec --recursive"],
    "kubectl explain shoot.{path}": ["kubectl explain shoot.spec.kubernetes"],
    "kubectl gardener why shoot tulip --namespace=garden-dev": [
        "kubectl gardener why shoot tulip --namespace=garden-dev"
    ],
    "kubectl get certificatesigningrequests": ["kubectl get certificatesigningrequests"],
    "kubectl get cloudprofiles": ["kubectl get cloudprofiles"],
    "kubectl get leases --namespace={LEASE_NAMESPACE}": ["kubectl get leases --namespace=kube-system"],
    "kubectl get managedresources --all-namespaces": ["kubectl get managedresources --all-namespaces"],
    "kubectl get managedseeds --namespace={_GARDEN}": ["kubectl get managedseeds --namespace=garden"],
    "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations": [
        "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations"
    ],
    "kubectl get networkpolicies --namespace={NAMESPACE}": [f"kubectl get networkpolicies --namespace={SEED}"],
    "kubectl get projects": ["kubectl get projects"],
    "kubectl get rolebindings --namespace={namespace}": ["kubectl get rolebindings --namespace=garden-dev"],
    "kubectl get seed rosebed --output=yaml": ["kubectl get seed rosebed --output=yaml"],
    "kubectl get seedautoscalers --namespace={_GARDEN}": ["kubectl get seedautoscalers --namespace=garden"],
    "kubectl get seeds": ["kubectl get seeds"],
    "kubectl get shoots,credentialsbindings --namespace=garden-dev{missing}": [
        "kubectl get shoots,credentialsbindings --namespace=garden-dev"
    ],
    "kubectl patch seed {ROSEBED} --type=merge --patch='{dumps}'": [
        """kubectl patch seed rosebed --type=merge --patch='{"spec":{"settings":{"scheduling":{"visible":false}}}}'"""
    ],
    "kubectl patch shoot {_NAME} --namespace={_NAMESPACE} --type=merge --patch='{written}'": [
        f"kubectl patch shoot tulip --namespace=garden-dev --type=merge --patch='{_PATCH}'"
    ],
    "kubectl patch shoot {_SLEEPING} --namespace={_USERS} --type=merge --patch='{dumps}'": [
        f"kubectl patch shoot tulip --namespace=garden-dev --type=merge --patch='{_PATCH}'"
    ],
    "kubectl scale managedseedset botany --namespace=garden --replicas=3": [
        "kubectl scale managedseedset botany --namespace=garden --replicas=3"
    ],
    "kubectl delete shoot {_NAME} --namespace={_NAMESPACE}": ["kubectl delete shoot rose --namespace=garden-dev"],
    "kubectl delete shoot {name} --namespace={namespace}": ["kubectl delete shoot wilting --namespace=garden-dev"],
    "kubectl delete shoot {_WAITING} --namespace={_USERS}": ["kubectl delete shoot waiting --namespace=garden-dev"],
    "kubectl delete shoot tulip --namespace=garden-dev": ["kubectl delete shoot tulip --namespace=garden-dev"],
    "kubectl annotate crd {name} {CONFIRM_DELETION}=true && kubectl delete crd {name}": [
        (
            f"kubectl annotate crd bastions.extensions.gardener.cloud {keys.CONFIRM_DELETION}=true && "
            "kubectl delete crd bastions.extensions.gardener.cloud"
        )
    ],
    "kubectl delete crd {name}": ["kubectl delete crd workers.extensions.gardener.cloud"],
    # Python
    "python -m agent.gardenlet.images": [".venv/bin/python -m agent.gardenlet.images --help"],
    "python -m agent.references": [".venv/bin/python -m agent.references --help"],
    "python -m agent.references manifests/*.yaml": [
        ".venv/bin/python -m agent.references manifests/crds/*.yaml | kubectl apply --server-side -f -"
    ],
    "python -m devcluster": [".venv/bin/python -m devcluster --help"],
    "python -m devcluster build": [".venv/bin/python -m devcluster build --help"],
    "python -m devcluster build --kubernetes VERSION": [
        ".venv/bin/python -m devcluster build --kubernetes 1.36 --help"
    ],
    "python -m devcluster exec -- kubectl get nodes": [
        ".venv/bin/python -m devcluster exec --help -- kubectl get nodes"
    ],
    "python -m devcluster status --name NAME": [".venv/bin/python -m devcluster status --name none || test $? = 1"],
    "python -m release": [".venv/bin/python -m release --help"],
    "python -m release.plugins": [".venv/bin/python -m release.plugins --help"],
    "python -m webhooks certificates": [".venv/bin/python -m webhooks certificates --help"],
    "python -m webhooks configurations": [".venv/bin/python -m webhooks configurations --help"],
    "python -m webhooks garden": [".venv/bin/python -m webhooks garden --help"],
}
LEFT_OUT = {
    r"kubectl \{_IN_SHOOT\} ": _NO_API_SERVER_OF_ITS_OWN,
    r"kubectl --kubeconfig=\{kubeconfig\} get managedresources": _NO_API_SERVER_OF_ITS_OWN,
    r"kubectl gardener kubeconfig ": "test_garden_kubeconfigs.py gets one",
    r"kubectl gardener flow ": "test_gardenlet_flows.py has a gardenlet",
    r"kubectl mss status \{name\} -n \{namespace\} --watch": "waits for controllers; `status` runs here",
    r"kubectl get machines -n \{seed\}": "the machine-controller-manager serves them, on seeds with workers",
    r"kubectl get managedresources --all-namespaces\{missing\}": "a note follows it; it runs here without",
    r"kubectl -n garden port-forward ": "needs containers",
    r"kubectl \{(name|arguments|where|pool)\}": "composed of others, which are listed by themselves",
    r"kubectl (mr|gardener)$": "the name of a plugin",
    r"kubectl apply$": "names who has written an object",
    r"make ": "test_documented_commands.py lists the targets, and who runs them",
    r"python -m (components.table|config.reference)": "writes pages; test_config_reference.py and test_docs.py compare them",
    r"python -m devcluster (demo|down|kubeconfig|up)": "test_devcluster_life.py and test_box_of_seed.py start clusters",
}
"""By how they begin."""


def _reason(command: str) -> str:
    return next((why for start, why in LEFT_OUT.items() if re.match(start, command)), "")


def test_every_printed_command_is_run_by_a_test() -> None:
    found = printed()
    assert [each for each in found if each.command not in RUN and not _reason(each.command)] == []
    commands = {each.command for each in found}
    assert [each for each in RUN if each not in commands] == []
    assert [start for start in LEFT_OUT if not any(re.match(start, each) for each in commands)] == []


def test_each_reason_names_tests_that_exist() -> None:
    named = set(re.findall(r"\btest_\w+\.py", " ".join(LEFT_OUT.values())))
    assert {each for each in named if not list((PROJECT / "tests").rglob(each))} == set()


def _objects() -> Iterator[Object]:
    for name in ("garden", "garden-dev", SEED, "shop", "bakery"):
        yield obj("v1 Namespace", name, annotations={keys.SKIP_STALE_CHECK: "false"})
    noted = {
        keys.OPERATION: "other",
        keys.CONFIRM_DELETION: "false",
        keys.SHOOT_EXPIRATION: "2029-01-01T00:00:00Z",
        keys.SHOOT_IGNORE: "true",
    }
    yield garden_object(garden.SHOOTS, "s", namespace="garden-dev", annotations=noted)
    for name in ("tulip", "rose", "wilting", "waiting"):
        yield garden_object(garden.SHOOTS, name, namespace="garden-dev")
    for name in ("thing", "rosebed"):
        yield garden_object(garden.SEEDS, name, labels={"a": "b"})
    for name in ("thing", "doomed"):
        yield garden_object(garden.CLOUD_PROFILES, name)
        yield garden_object(garden.MANAGED_SEEDS, name, namespace="garden")
    for resource in (garden.PROJECTS, garden.BACKUP_BUCKETS, garden.CONTROLLER_INSTALLATIONS):
        yield garden_object(resource)
    yield garden_object(garden.BACKUP_ENTRIES, namespace="garden-dev")
    yield garden_object(garden.MANAGED_SEED_SETS, namespace="garden-dev")
    yield garden_object(garden.MANAGED_SEED_SETS, "botany", namespace="garden")
    for name in ("kube-apiserver", "gardener-resource-manager"):
        yield deployment(name, namespace=SEED)
    yield deployment("storefront", namespace="shop")
    yield obj("v1 Service", f"{SEED}/kube-apiserver", spec={"ports": [{"port": 443}]})
    yield obj("coordination.k8s.io/v1 Lease", f"{SEED}/held", spec={"holderIdentity": "other"})
    yield obj("v1 ServiceAccount", "garden-dev/robot")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    yield {**obj("rbac.authorization.k8s.io/v1 RoleBinding", "garden-dev/eve"), "roleRef": role, "subjects": []}
    yield {**obj("admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", "hook"), "webhooks": []}
    usable = {"usable-by.seed.gardener.cloud/meadow": "false"}
    yield obj("v1 Secret", "garden/backup", labels=usable)
    for name in ("storefront", "kept"):
        yield config_map(f"shop/{name}", {"greeting": "Hello"})
    yield secret("shop/goods", {"o.yaml": yaml.safe_dump(config_map("shop/kept", {"greeting": "Hello"}))})
    ignored = {keys.IGNORE: "true"}
    for name in ("goods", "vouchers"):
        spec = {"class": "none", "secretRefs": [{"name": "goods"}]}
        yield managed_resource(f"shop/{name}", spec=spec, annotations=ignored)
    of_provider = {"type": "local", "region": "local", "secretRef": {"name": "x"}}
    head = "extensions.gardener.cloud/v1alpha1"
    yield obj(f"{head} Infrastructure", f"{SEED}/thing", spec=of_provider)
    yield obj(f"{head} Worker", f"{SEED}/thing", spec={**of_provider, "pools": []})
    yield managed_resource(f"{SEED}/shoot-core", spec={"class": "none", "secretRefs": []})


def _kubectl(cluster: Cluster, script: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        **os.environ,
        "PATH": f"{PROJECT / '.venv/bin'}:{os.environ['PATH']}",
        "KUBECONFIG": str(cluster.kubeconfig),
        "KUBE_EDITOR": "true",
    }
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=PROJECT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster(nodes=1) as own:
        for definition in chain.from_iterable(map(custom_resource_definitions, Stage)):
            own.api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), definition)
        install_crd(own)
        applied = _kubectl(own, "kubectl apply --server-side -k manifests/crds/garden")
        assert applied.returncode == 0, applied.stdout
        wait_until_served(own, garden.SHOOTS.path(), MANAGED_RESOURCES.path(), *(each.path() for each in SEED_KINDS))
        yield own


def test_printed_commands_work(cluster: Cluster, tmp_path: Path) -> None:
    everything = tmp_path / "objects.yaml"
    everything.write_text(yaml.safe_dump_all(_objects()))
    made = _kubectl(cluster, f"kubectl create -f {everything}")
    assert made.returncode == 0, made.stdout
    failed = []
    for template, commands in RUN.items():
        for command in commands:
            done = _kubectl(cluster, command)
            if done.returncode:
                failed.append(f"{template}\n$ {command}\n{done.stdout}")
    assert not failed, "\n".join(failed)
