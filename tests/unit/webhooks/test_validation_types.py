"""Types of extension resources are made from the descriptions of their kinds, and from what Go declares otherwise."""

from typing import Any

import pytest

from gardener.api.definition import Definition
from gardener.api.extensions import WORKERS
from gardener.api.extensions.common import definition
from gardener.api.schema import Schema, array, boolean, integer, string, string_map, strings, struct
from webhooks.handlers.extension_validation.rules.go_types import typed
from webhooks.handlers.extension_validation.rules.typed import Member, decode, members

INNER = struct("A thing.", {"size*": integer("Its size."), "except": strings("What is left out.")})


def described(**fields: Schema) -> Definition:
    return definition(WORKERS, "A kind.", spec={name.replace("_", "*"): schema for name, schema in fields.items()})


def fields_of(kind: Definition, **declarations: str) -> dict[str, Member]:
    spec: Any = typed(kind, declarations)()
    return {member.name: member for member in members(type(spec.spec))}


def test_required_fields_hold_their_value_and_others_point_to_it() -> None:
    found = fields_of(described(a_=string("A."), b=string("B."), c=boolean("C."), d=string_map("D."), e=strings("E.")))
    assert {name: found[name].pointer for name in "abcde"} == {"a": "", "b": "string", "c": "bool", "d": "", "e": ""}
    assert (found["d"].empty, found["b"].empty) == ("map[]", "<nil>")


def test_fields_are_called_as_in_json_unless_they_are_declared_otherwise() -> None:
    kind = described(cidrBlock=string("A."), sshKey=string("B."), other=string("C."))
    found = fields_of(kind, other="Base.Another value")
    assert [found[name].go_name for name in ("cidrBlock", "sshKey")] == ["CIDRBlock", "SSHKey"]
    assert (found["other"].embedded, found["other"].go_name, found["other"].pointer) == ("Base", "Another", "")
    assert found["type"].embedded == "DefaultSpec"


def test_a_field_that_the_original_does_not_have_is_no_field() -> None:
    assert "b" not in fields_of(described(a=string("A."), b=string("B.")), b="-")


def test_values_are_decoded_with_their_defaults() -> None:
    kind = typed(described(inner_=INNER, many=array("Many.", INNER)), {})
    found: Any = decode(kind, {"spec": {"many": [{"size": 1, "except": ["a"], "new": 2}, {}]}}, kind="Thing")
    assert (found.spec.inner.size, found.spec.inner.except_, found.spec.type) == (0, None, "")
    assert [(each.size, each.except_) for each in found.spec.many] == [(1, ["a"]), (0, None)]


@pytest.mark.parametrize(
    ("declarations", "text"),
    [({}, "inner points to a type that is not declared"), ({"inner": "*Inner", "gone[].a": "-"}, "has no gone")],
)
def test_declarations_have_to_suit_the_description(declarations: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        typed(described(inner=INNER), declarations)
