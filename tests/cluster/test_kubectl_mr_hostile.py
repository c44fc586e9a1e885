"""All commands of `kubectl mr`, with objects whose authors would like to write to a user's terminal."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import ORIGIN
from gardener.managed_resource.history import CHANGE_CAUSE, packed, revision_secret
from kit.managed_resources import install_crd
from kit.objects import conditions, config_map, managed_resource, obj, reference, secret
from kit.world import Place
from kube.objects import uid
from kube.resources import ROLES
from kubectl.mr.__main__ import COMMANDS, app

EVIL = "x\x1b]0;t\x07\x1b[2J\x9b1m\r✔ forged\n✔ forged\u2028\u202egnp\u2066\u200b\x7fy"
ROLE = "evil\x1b[2J\rrole\u202e"
"""The API server takes any name that is a segment of a path, of roles."""


@pytest.fixture
def objects(cluster: Cluster, namespace: str, tmp_path: Path) -> Path:
    """A failed ManagedResource, its Secret, its objects and its Event; the same in a file."""
    install_crd(cluster)
    place, evil, marks = Place(cluster, namespace), {"evil": EVIL}, {ORIGIN: f"{namespace}/mr"}
    role = obj(ROLES, ROLE, namespace=namespace, annotations=evil)
    data = {"one": EVIL, "two": EVIL.replace("\n", "")}
    text = config_map("c", data, namespace=namespace, annotations=evil)
    manifests = yaml.safe_dump_all([role, text], allow_unicode=True)
    opaque = secret("s", {"objects.yaml": f"# {EVIL}\n{manifests}"}, namespace=namespace, annotations=evil)
    spec: dict[str, Any] = {"class": f"unused{EVIL}", "secretRefs": [{"name": "s"}], "injectLabels": evil}
    managed = managed_resource("mr", namespace=namespace, annotations=evil, spec=spec)
    place.create(obj(ROLES, ROLE, annotations=marks))
    place.create(config_map("c", {"one": "a\n\x1b"}, annotations=marks))
    place.create(opaque)
    created = place.create(managed)
    marked = {**created, "metadata": {**created["metadata"], "annotations": {CHANGE_CAUSE: EVIL}}}
    for number, names in ((1, ["s"]), (2, [EVIL])):
        content = packed([(name, {"objects.yaml": manifests.encode()}) for name in names])
        place.create(revision_secret(marked, number=number, digest=EVIL, names=names, value=content))
    (condition,) = conditions(
        healthy="",
        progressing="",
        applied="False",
        reason="ApplyFailed",
        message=EVIL,
        lastUpdateTime="2026-01-01T00:00:00Z",
        lastTransitionTime="2026-01-01T00:00:00Z",
    )
    listed = [
        reference("rbac.authorization.k8s.io/v1 Role", f"{namespace}/{ROLE}"),
        reference("v1 ConfigMap", f"{namespace}/c"),
    ]
    status = {"conditions": [condition], "resources": listed, "observedGeneration": 1}
    place.patch("ManagedResource", "mr", {"status": status}, subresource="status")
    leaving = managed_resource("leaving", annotations=evil, finalizers=["example.com/hold"], spec={"secretRefs": []})
    place.create(leaving)
    place.patch("ManagedResource", "leaving", {"status": status}, subresource="status")
    about = reference(f"{MANAGED_RESOURCES.api_version} ManagedResource", f"{namespace}/mr", uid=uid(created))
    event = {"type": EVIL, "reason": EVIL, "message": EVIL, "source": {"component": EVIL}}
    place.create(obj("Event", "e", involvedObject=about, lastTimestamp="2026-01-01T00:00:00Z", **event))
    file = tmp_path / f"{EVIL.replace('/', '')}.yaml"
    file.write_text(yaml.safe_dump_all([opaque, managed], allow_unicode=True))
    (tmp_path / "config.yaml").write_text(CONFIG)
    return file


CONFIG = """\
apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
leaderElection: {resourceNamespace: garden}
webhooks: {seccompProfile: {enabled: true}}
"""
POD = obj("Pod", ROLE, namespace=EVIL, annotations={"evil": EVIL}, spec={"containers": [{"name": EVIL, "image": EVIL}]})
UNREADABLE = f"a: [\n--- \n{EVIL}"


def test_no_command_lets_others_write_to_the_terminal(cluster: Cluster, namespace: str, objects: Path) -> None:
    (objects.parent / "pod.json").write_text(json.dumps(POD))
    (objects.parent / "bad.yaml").write_text(f"kind: {EVIL!r}\nmetadata: [\n")
    odd_object = {"apiVersion": EVIL, "kind": EVIL, "metadata": {"name": EVIL}}
    (objects.parent / "odd.yaml").write_text(yaml.safe_dump(odd_object))
    file, pod, bad, odd = str(objects), *(str(objects.parent / name) for name in ("pod.json", "bad.yaml", "odd.yaml"))
    config = str(objects.parent / "config.yaml")
    here = ("-n", namespace)
    forms = ("json", "yaml")
    calls: dict[str, list[tuple[str, ...]]] = {
        "get": [
            (*here,),
            (*here, "-o", "wide"),
            (*here, "mr"),
            ("-A",),
            (EVIL, *here),
            *((*here, "-o", f) for f in (*forms, "name")),
        ],
        "describe": [("mr", *here), (EVIL, *here), *(("mr", *here, "-o", form) for form in forms)],
        "tree": [("mr", *here), *(("mr", *here, "-o", form) for form in forms)],
        "trace": [
            (f"role/{ROLE}", *here),
            ("cm/c", *here),
            (f"role/{EVIL}", *here),
            (f"{EVIL}/x", *here),
            *((f"role/{ROLE}", *here, "-o", form) for form in forms),
        ],
        "diff": [("mr", *here), *(("mr", *here, "-o", form) for form in forms)],
        "history": [("mr", *here), *(("mr", *here, "-o", form) for form in (*forms, "name", "wide")), (EVIL, *here)],
        "rollback": [
            ("mr", *here, "--dry-run", "server"),
            ("mr", *here, "--dry-run", "server", "--to", "1"),
            ("mr", *here, "--to", "2"),
            (EVIL, *here),
        ],
        "events": [here, ("mr", "--objects", *here), *((*here, "-o", form) for form in (*forms, "name"))],
        "logs": [("mr", *here)],
        "stats": [here, *((*here, "-o", form) for form in forms)],
        "check": [here, *((*here, "-o", form) for form in forms)],
        "create": [
            ("new", "-f", file, *here, "--dry-run", "client"),
            ("new", "-f", bad, *here),
            ("new", "-f", odd, *here),
        ],
        "delete": [("leaving", "--timeout", "0s", *here), (EVIL, *here)],
        "reconcile": [("mr", "--timeout", "0s", *here), (EVIL, *here)],
        "suspend": [("mr", "-r", EVIL, *here)],
        "resume": [("mr", "--timeout", "0s", *here)],
        "wait": [("mr", "--timeout", "0s", *here), ("mr", "--for", "deleted", "--timeout", "0s", *here)],
        "decode": [("s", "-o", "yaml", *here), ("s", "-o", "json", *here), (file, "-o", "yaml"), (bad,)],
        "encode": [("-f", file, "--name", "n", *here), ("-f", bad, "--name", "n", *here)],
        "render": [("-f", file), ("-f", file, "-o", "json"), ("-f", bad), ("-f", odd)],
        "admit": [
            ("-f", pod, "--config", config),
            ("-f", pod, "--config", config, "-o", "yaml"),
            ("-f", bad, "--config", config),
        ],
    }
    assert list(calls) == list(COMMANDS)
    shown = 0
    for command, variants in calls.items():
        for arguments in variants:
            result = run(cluster, command, *arguments)
            assert result.exception is None or isinstance(result.exception, SystemExit), (command, arguments, result)
            for text in (result.stdout, result.stderr):
                assert text.replace("\n", "").isprintable(), (command, arguments, text)
                assert not any(line.startswith("✔ forged") for line in text.splitlines()), (command, arguments, text)
                shown += text.count("\\x1b") + text.count("\\u001b")
            if "json" in arguments:
                json.loads(result.stdout)
            elif "yaml" in arguments:
                list(yaml.safe_load_all(result.stdout))
    assert shown > 100  # or nothing was queried that could have shown anything


def test_data_is_exact(cluster: Cluster, namespace: str, objects: Path) -> None:
    for form, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        (shown,) = (load(run(cluster, "get", "mr", "-n", namespace, "-o", form).stdout),)
        assert shown["metadata"]["annotations"]["evil"] == EVIL
        assert shown["status"]["conditions"][0]["message"] == EVIL
    # Not to a terminal: as it was written.
    assert EVIL.replace("\r", "\n") in run(cluster, "decode", "s", "-n", namespace).stdout.replace("\r", "\n")


def run(cluster: Cluster, *arguments: str) -> Result:
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "NO_COLOR": "1"}
    return CliRunner().invoke(app, list(arguments), env=environment)
