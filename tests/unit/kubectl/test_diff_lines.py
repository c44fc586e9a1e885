"""What `kubectl gardener diff` prints of a report."""

from gardener.difference_reports import DifferenceReport, ObjectDifference, Place
from kube.objects import Object
from kubectl.garden.commands.diff import lines
from kubectl.style import rendered


def config_map(**data: str) -> Object:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": data}


def printed(*, before: Object | None, after: Object | None, within: str = "") -> list[str]:
    difference = ObjectDifference(
        place=Place.SEED, api_version="v1", kind="ConfigMap", name="n/a", within=within, before=before, after=after
    )
    return [rendered(each, colors=False) for each in lines(DifferenceReport([difference]))]


def test_a_changed_field_is_shown_in_its_place() -> None:
    other_order = {name: config_map(x="2\nz", b="one")[name] for name in ("data", "metadata", "apiVersion", "kind")}
    assert printed(before=config_map(b="one", x="1\nz"), after=other_order) == [
        "seed: ConfigMap n/a",
        "--- ConfigMap/a",
        "+++ ConfigMap/a",
        "@@ -2,7 +2,7 @@",
        " data:",
        "   b: one",
        "   x: |-",
        "-    1",
        "+    2",
        "     z",
        " kind: ConfigMap",
        " metadata:",
    ]


def test_new_and_removed_objects_are_shown_whole() -> None:
    assert printed(before=None, after=config_map(), within="ManagedResource s/m")[:3] == [
        "seed: ConfigMap n/a (ManagedResource s/m)",
        "--- /dev/null",
        "+++ ConfigMap/a",
    ]
    assert [line for line in printed(before=config_map(), after=None) if line.startswith("+")] == ["+++ /dev/null"]
