"""What is remembered of changes: so many, and of each the paths of its fields."""

from typing import Any

from agent.resource_manager.common.recent_changes import Action, RecentChanges, object_change
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet
from gardener.managed_resource.changes import FieldChange, field_changes
from kube.objects import Key

SHOP, DNS = Key("garden", "shop"), Key("garden", "dns")
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "prices"}


def test_the_newest_come_first_and_the_oldest_go() -> None:
    changes = RecentChanges(limit=2)
    created = object_change(SHOP, Action.CREATED, CONFIG_MAP, at=1.0)
    fields = [FieldChange("data.a", "1 -> 2")]
    changes.add([created, object_change(SHOP, Action.REPAIRED, CONFIG_MAP, at=2.0, fields=fields)])
    changes.add([object_change(DNS, Action.DELETED, {"kind": "Namespace", "name": "n"}, at=3.0)])
    newest, older = changes.newest_first()
    assert (newest.at, newest.owner, newest.action, newest.kind, newest.key) == (
        3,
        DNS,
        Action.DELETED,
        "Namespace",
        Key("", "n"),
    )
    assert (older.at, older.key, older.fields, older.more_fields) == (2, Key("shop", "prices"), ("data.a",), 0)
    assert list(changes.newest_first(owner=SHOP)) == [older]


def test_an_entry_is_small_however_much_was_changed() -> None:
    before, after = ({"data": {f"{n}{'x' * 1000}": value for n in range(10_000)}} for value in ("1", "2"))
    change = object_change(SHOP, Action.CHANGED, CONFIG_MAP, at=1.0, fields=field_changes(before, after))
    assert len(change.fields) == 8
    assert max(map(len, change.fields)) == 160
    assert change.more_fields == 92


def test_where_there_is_no_page_nothing_is_compared() -> None:
    class Untouchable(dict[str, Any]):
        def __iter__(self) -> Any:
            raise AssertionError

    changes = ChangeSet(owner=SHOP, lists_objects=False)
    changes.note(Action.CHANGED, CONFIG_MAP, before=Untouchable(a=1), after=Untouchable(a=2))
    assert changes.objects == []


def test_drift_is_what_others_had_changed_or_deleted() -> None:
    assert [action for action in Action if action.is_repair] == [Action.REPAIRED, Action.MADE_AGAIN]
    assert [action for action in Action if action.is_news] == [Action.REPAIRED, Action.MADE_AGAIN, Action.TAKEN_OVER]
