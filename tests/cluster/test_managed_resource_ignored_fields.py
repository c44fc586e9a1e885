"""Fields that are set when an object is created and then left to others, by an annotation of the ManagedResource."""

import re
from pathlib import Path

import yaml
from click.testing import CliRunner

from devcluster.audit import Audit
from kit.objects import CONTAINERS, config_map, deployment
from kit.rig import Agent, Rig
from kit.world import writes
from kube.objects import Object
from kubectl.mr.__main__ import app

IGNORE = "resources.gardener.cloud/ignore-differences"
DATA = "[{kind: ConfigMap, name: c, jsonPointers: [/data/theirs]}]"


def write(rig: Rig, rules: str, *objects: Object, **fields: str) -> None:
    rig.write_secret("mr", *objects)
    rig.write_managed_resource("mr", annotated={IGNORE: rules}, **fields)


def diff(rig: Rig) -> tuple[int, str]:
    environment = {"KUBECONFIG": str(rig.cluster.kubeconfig), "NO_COLOR": "1", "COLUMNS": "300"}
    result = CliRunner().invoke(app, ["diff", "mr", "-n", rig.namespace], prog_name="kubectl mr", env=environment)
    return result.exit_code, result.output


def test_a_field_is_set_at_creation_and_left_to_others(rig: Rig, audit: Audit) -> None:
    write(rig, DATA, config_map("c", {"theirs": "1", "ours": "1"}), config_map("d", {"theirs": "1"}))
    rig.until_applied("mr")
    rig.until_data("c", {"theirs": "1", "ours": "1"})
    # Nothing is written for it, but all else is corrected.
    mark = audit.mark()
    rig.patch("ConfigMap", "c", {"data": {"theirs": "2"}})
    rig.patch("ConfigMap", "d", {"data": {"theirs": "2"}})
    rig.until_data("d", {"theirs": "1"})
    assert "c" not in {call.name for call in writes(audit, user=rig.agent.user, since=mark, namespace=rig.namespace)}
    assert diff(rig)[0] == 0
    rig.patch("ConfigMap", "c", {"data": {"ours": "3"}})
    rig.until_data("c", {"theirs": "2", "ours": "1"})
    # A new manifest changes nothing of it either, nor does its removal by others.
    rig.write_secret("mr", config_map("c", {"theirs": "4", "ours": "4"}))
    rig.until_data("c", {"theirs": "2", "ours": "4"})
    rig.patch("ConfigMap", "c", {"data": {"theirs": None, "ours": "5"}})
    rig.until_data("c", {"ours": "4"})
    # Who deletes the object gets the whole manifest.
    rig.delete("ConfigMap", "c")
    rig.until_data("c", {"theirs": "4", "ours": "4"})


def test_another_rule_counts_at_once_also_after_a_restart(rig: Rig, audit: Audit) -> None:
    own = Agent(rig.cluster, resource_class=f"c-{rig.namespace[-10:]}")
    with own.start():
        write(rig, DATA, config_map("c", {"theirs": "1"}), resource_class=own.resource_class)
        rig.until_applied("mr")
        rig.patch("ConfigMap", "c", {"data": {"theirs": "2"}})
    mark = audit.mark()
    with own.start():
        rig.write_secret("mr", config_map("c", {"theirs": "1"}), config_map("new"))
        rig.until(lambda: rig.find("ConfigMap", "new"), "the new object")
        rig.until_applied("mr")
        written = {call.name for call in writes(audit, user=own.user, since=mark, namespace=rig.namespace)}
        assert "c" not in written
        rig.until_data("c", {"theirs": "2"})
        rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {IGNORE: None}}})
        rig.until_data("c", {"theirs": "1"})
        rig.delete_managed_resource("mr")


def test_a_rule_that_fits_no_object_is_reported_and_costs_nothing(rig: Rig, audit: Audit) -> None:
    write(rig, "[{kind: ConfigMap, name: gone, jsonPointers: [/data/theirs]}]", config_map("c", {"ours": "1"}))
    reported = (
        f"All resources are applied, with warnings: metadata.annotations[{IGNORE}][0]: no object is a ConfigMap gone"
    )
    rig.until(lambda: rig.applied("mr")[2] == reported, "the condition to report it")
    mark = audit.mark()
    rig.patch("ConfigMap", "c", {"data": {"ours": "2"}})
    rig.until_data("c", {"ours": "1"})
    done = writes(audit, user=rig.agent.user, since=mark, namespace=rig.namespace)
    assert not any(call.resource.startswith("managedresources") for call in done)
    write(rig, DATA, config_map("c", {"ours": "1"}))
    rig.until(lambda: rig.applied("mr")[2] == "All resources are applied.", "the warning to go")


def test_a_wrong_pointer_is_reported_and_nothing_is_written(rig: Rig) -> None:
    """The message is that of the documentation."""
    section = documented()
    message = re.findall(r"^```\n(nothing is written or deleted: .*)\n```$", section, re.MULTILINE)[0]
    write(rig, "[{kind: ConfigMap, jsonPointers: [spec.replicas]}]", config_map("c"))
    assert rig.until_failed("mr", "nothing is written") == message
    assert rig.find("ConfigMap", "c") is None
    exit_code, output = diff(rig)
    assert exit_code == 2, output
    assert message.removeprefix("nothing is written or deleted: ") in " ".join(output.split())
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {IGNORE: DATA}}})
    rig.until_applied("mr")


def documented() -> str:
    page = (Path(__file__).parents[2] / "docs" / "managed-resource-updates.md").read_text()
    return page.partition("\n### Ignored fields\n")[2].partition("\n## ")[0]


def test_the_example_of_the_documentation(rig: Rig) -> None:
    (metadata,) = re.findall(r"```yaml\n(.*?)```", documented(), re.DOTALL)
    noted = {"example.com/revision": "ours"}
    flags = config_map("c", {"flags": "a", "other": "1"})
    rig.write_secret("shop", deployment("storefront", annotations=noted), flags)
    rig.write_managed_resource("shop", annotated=yaml.safe_load(metadata)["metadata"]["annotations"])
    rig.until_applied("shop")
    other = {"containers": [{**CONTAINERS[0], "image": "theirs"}]}
    annotations = {"example.com/revision": "theirs"}
    changed = {"template": {"spec": other}, "revisionHistoryLimit": 3}
    rig.patch("Deployment", "storefront", {"metadata": {"annotations": annotations}, "spec": changed})
    rig.patch("ConfigMap", "c", {"data": {"flags": "b", "other": "2"}})
    rig.until_data("c", {"flags": "b", "other": "1"})
    rig.until(lambda: rig.get("Deployment", "storefront")["spec"]["revisionHistoryLimit"] == 10, "it to be corrected")
    live = rig.get("Deployment", "storefront")
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "theirs"
    assert live["metadata"]["annotations"]["example.com/revision"] == "theirs"
