"""Status fields of a Shoot from which names derive."""

from collections.abc import Iterator

from gardener.api import garden
from gardener.garden.seed_graph import Graph, Reference, projects_named
from gardener.garden.shoots import parse_technical_id
from kube.objects import Key, mapping, text, uid
from webhooks.authorizers.seed.rules.common import Objection, Write


def identity_of_shoot(write: Write, graph: Graph) -> Iterator[Objection]:
    """`technicalID`, `uid` and `clusterIdentity` derive from Project, name and uid, and stay once set."""
    before, now = mapping(write.old.get("status")), mapping(write.new.get("status"))
    project, name = parse_technical_id(text(now.get("technicalID")))
    is_its = name == write.key.name and graph.is_of_project(write.key.namespace, project)
    identity = f"{text(now.get('technicalID'))}-{uid(write.new)}-"
    for field, is_right, right in (
        ("technicalID", is_its, "shoot--<name of the Project>--<name of the Shoot>"),
        ("uid", now.get("uid") == uid(write.new), "metadata.uid"),
        ("clusterIdentity", text(now.get("clusterIdentity")).startswith(identity), f"{identity}<that of the garden>"),
    ):
        if text(now.get(field)) == text(before.get(field)):
            continue
        if before.get(field):
            yield Objection(f"status.{field} may not change: leave it as it is")
        elif not is_right:
            yield Objection(f"status.{field} must be {right}")


def projects_in(write: Write) -> Iterator[Reference]:
    """Projects on which the decision depends, in addition to objects of the Seed."""
    if write.resource == garden.SHOOTS:
        project, _ = parse_technical_id(text(mapping(write.new.get("status")).get("technicalID")))
        yield from [Reference(garden.PROJECTS, Key("", project))] if project else []
    yield from projects_named(write.resource.plural, write.key)
