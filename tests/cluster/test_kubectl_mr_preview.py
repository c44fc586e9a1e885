"""`kubectl mr diff -f` and `create --dry-run server`: what manifests would do, before anybody applies them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from devcluster.cluster import Cluster
from gardener.keys import KEEP_OBJECT, MODE, MODE_IGNORE, ORIGIN
from kit.managed_resources import install_crd
from kit.objects import config_map, deployment, managed_resource, obj, reference, secret
from kit.world import Place
from kube.objects import Object

LISTED = ("same", "changed", "gone", "kept", "absent", "ignored")
"""ConfigMaps in the inventory of the ManagedResource `shop`, which no agent looks after."""


class Shop(Place):
    def mr(self, *arguments: str, stdin: Object | list[Object] | None = None, code: int = 0) -> Result:
        text = yaml.safe_dump_all(stdin if isinstance(stdin, list) else [stdin]) if stdin else ""
        environment = {"KUBECONFIG": str(self.cluster.kubeconfig), "NO_COLOR": "1"}
        result = CliRunner().invoke(app(), [*arguments, "-n", self.namespace], input=text, env=environment)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    def preview(self, *objects: Object, name: str = "shop", code: int = 1) -> dict[str, Object]:
        """By name of the object."""
        printed = self.mr("diff", name, "-f", "-", "-o", "json", stdin=list(objects), code=code).stdout
        return {entry["name"].rpartition("/")[2]: entry for entry in json.loads(printed)}

    def text(self, name: str, data: dict[str, str] | None = None, **fields: Any) -> Object:
        return config_map(name, data or {"a": "b"}, namespace=self.namespace, **fields)

    def owned(self, name: str, data: dict[str, str] | None = None, *, by: str = "shop", keep: bool = False) -> None:
        notes = {ORIGIN: f"{self.namespace}/{by}", **({KEEP_OBJECT: "true"} if keep else {})}
        self.create(self.text(name, data, annotations=notes))

    def lists(self, managed: str, *names: str) -> None:
        self.create(managed_resource(managed, spec={"class": "unused"}))
        listed = [reference("v1 ConfigMap", f"{self.namespace}/{name}") for name in names]
        self.patch("ManagedResource", managed, {"status": {"resources": listed}}, subresource="status")


def app() -> Any:
    from kubectl.mr.__main__ import app

    return app


@pytest.fixture
def shop(cluster: Cluster, namespace: str) -> Shop:
    install_crd(cluster)
    return Shop(cluster, namespace)


def test_what_would_be_created_changed_taken_over_and_removed(shop: Shop) -> None:
    shop.lists("shop", *LISTED)
    shop.owned("same")
    shop.owned("changed", {"a": "before"})
    shop.owned("gone")
    shop.owned("kept", keep=True)
    shop.owned("ignored")
    shop.create(shop.text("found", {"a": "before"}))
    shop.lists("other", "held")
    shop.owned("held", by="other")
    shop.owned("left", by="not-any-more")
    before = shop.list("ConfigMap")
    shown = shop.preview(
        *(shop.text(name) for name in ("same", "new", "found", "held", "left")),
        shop.text("changed", {"a": "after"}),
        shop.text("ignored", annotations={MODE: MODE_IGNORE}),
        code=2,
    )
    assert shown.pop("same")["what"] == "changed"  # labels and annotations of the agent are missing
    assert {name: entry["what"] for name, entry in shown.items()} == {
        "new": "created",
        "changed": "changed",
        "found": "takenOver",
        "left": "takenOver",
        "held": "refused",
        "gone": "removed",
        "kept": "released",
        "ignored": "released",
    }
    assert {"path": "data.a", "before": "before", "after": "after"} in shown["changed"]["changes"]
    assert shown["found"]["reason"] == "it exists without an owner"
    assert {"path": "data.a", "before": "before", "after": "b"} in shown["found"]["changes"]
    assert shown["left"]["reason"] == f"it was of ManagedResource {shop.namespace}/not-any-more"
    assert f"is held by ManagedResource {shop.namespace}/other" in shown["held"]["problem"]
    assert KEEP_OBJECT in shown["kept"]["reason"]
    assert shop.list("ConfigMap") == before


def test_values_of_secrets_are_masked_and_unknown_fields_shown(shop: Shop) -> None:
    shop.create(secret("hidden", {"token": "b1gsecret"}))
    new = deployment("storefront", namespace=shop.namespace)
    new["spec"]["replica"] = 2
    hidden = secret("hidden", {"token": "an0therone"}, namespace=shop.namespace)
    printed = shop.mr("diff", "shop", "-f", "-", stdin=[hidden, new], code=1)
    assert f"► Secret/{shop.namespace}/hidden would be taken over" in printed.stdout
    assert "b1gsecret" not in printed.output
    assert "an0therone" not in printed.output
    assert f'⚠ Deployment/{shop.namespace}/storefront: unknown field "spec.replica"' in printed.stdout
    assert "◎ 2 objects: 1 would be created, 1 would be taken over" in printed.stderr


def test_what_the_api_server_refuses_is_shown_before(shop: Shop) -> None:
    broken = deployment("broken", namespace=shop.namespace)
    broken["spec"]["selector"]["matchLabels"] = {"other": "label"}
    unnamed: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": shop.namespace}}
    elsewhere = config_map("elsewhere", namespace=f"not-{shop.namespace}")
    unknown = obj("unknown.example.com/v1 Kind", "unknown", namespace=shop.namespace)
    shown = shop.preview(broken, elsewhere, unknown, unnamed, shop.text("good"), code=2)
    assert shown.pop("good")["what"] == "created"
    assert {entry["what"] for entry in shown.values()} == {"refused"}
    assert "is invalid: spec.template.metadata.labels" in shown["broken"]["problem"]
    assert "not found" in shown["elsewhere"]["problem"]
    assert "no matches for kind" in shown["unknown"]["problem"]
    assert len(shown) == 4


def test_namespaces_and_kinds_may_come_with_the_objects_that_need_them(shop: Shop) -> None:
    space = f"new-{shop.namespace}"
    group = f"g{shop.namespace}.example.com"
    definition = obj("apiextensions.k8s.io/v1 CustomResourceDefinition", f"things.{group}")
    definition["spec"] = {
        "group": group,
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    }
    thing = obj(f"{group}/v1 Thing", "one", namespace=space)
    shown = shop.preview(obj("v1 Namespace", space), config_map("two", namespace=space), definition, thing)
    assert {entry["what"] for entry in shown.values()} == {"created"}
    assert len(shown) == 4


def test_a_kustomization_and_files_are_read_and_no_difference_is_0(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(shop.text("one")))
    (tmp_path / "kustomization.yaml").write_text("resources: [c.yaml]\nnamePrefix: pre-\n")
    assert "ConfigMap" in shop.mr("diff", "shop", "-f", str(tmp_path / "c.yaml"), code=1).stdout
    printed = shop.mr("diff", "shop", "-k", str(tmp_path), code=1).stdout
    assert printed == f"► ConfigMap/{shop.namespace}/pre-one would be created\n"
    shop.create(managed_resource("empty", spec={"class": "unused", "secretRefs": []}))
    assert "no differences" in shop.mr("diff", "empty", code=0).stderr
    assert "cannot read" in shop.mr("diff", "shop", "-f", str(tmp_path / "none"), code=2).stderr


def test_create_as_a_dry_run_shows_the_same_and_creates_nothing(shop: Shop) -> None:
    shop.create(shop.text("found", {"a": "before"}))
    printed = shop.mr("create", "shop", "-f", "-", "--dry-run", "server", stdin=[shop.text("found"), shop.text("new")])
    assert f"► ConfigMap/{shop.namespace}/found would be taken over\n  it exists without an owner" in printed.stdout
    assert f"► ConfigMap/{shop.namespace}/new would be created" in printed.stdout
    assert shop.list("ManagedResource") == []
    assert shop.list("Secret") == []
    broken = deployment("broken", namespace=shop.namespace, selector={"matchLabels": {"other": "label"}})
    refused = shop.mr("create", "shop", "-f", "-", "--dry-run", "server", stdin=broken, code=1)
    assert "cannot be applied" in refused.stdout
