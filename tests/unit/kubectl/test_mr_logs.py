"""Lines of an agent's log: which ManagedResource they are about, and how they are shown."""

import json

import pytest

from kube.objects import Key, Object
from kubectl.mr.commands.logs import container_of, entry_of, is_about, line_of
from kubectl.style import rendered

SHOP = Key("garden", "shop")
TIME = "2026-01-01T10:00:00.123Z"
FIELDS = {"controller": "health", "ManagedResource": {"namespace": "garden", "name": "shop"}, "reconcileID": "1"}


def as_json(message: str, level: str = "info", **fields: object) -> str:
    return json.dumps({"level": level, "ts": TIME, "msg": message, **FIELDS, **fields})


def as_text(message: str, level: str = "INFO", **fields: object) -> str:
    return f"{TIME}\t{level}\tlogger\t{message}\t{json.dumps({**FIELDS, **fields})}"


@pytest.mark.parametrize("written", [as_json, as_text])
def test_a_line_in_either_format_is_understood(written: object) -> None:
    assert callable(written)
    entry = entry_of(written("Objects were changed", created=1, error="it is so"))
    assert (entry.time, is_about(entry, SHOP)) == (TIME, True)
    shown = rendered(line_of(entry), colors=False)
    assert shown == f'{TIME} info Objects were changed created=1 error="it is so"'
    assert not is_about(entry, Key("garden", "other"))
    assert not is_about(entry, Key("other", "shop"))


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", "{1}\t{", "Traceback", '{"ManagedResource": 1}', "a\tb\t[1]"])
def test_what_is_no_entry_is_about_nothing(text: str) -> None:
    assert not is_about(entry_of(text), SHOP)


def test_the_container_is_the_one_that_kubectl_takes() -> None:
    pod: Object = {"metadata": {}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
    assert container_of(pod) == "a"
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "b"}
    assert container_of(pod) == "b"
