"""The words in which kinds are described, and what they make of a schema."""

import pytest

from gardener.api import schema
from gardener.api.schema import Schema, array, boolean, integer, string, struct


def test_a_star_makes_a_field_required() -> None:
    made = struct("A thing.", {"name*": string("Its name."), "size": integer("Its size.")})
    assert made["required"] == ["name"]
    assert list(made["properties"]) == ["name", "size"]


def test_what_is_not_specified_is_not_in_the_schema() -> None:
    assert string("A text.") == {"description": "A text.", "type": "string"}


@pytest.mark.parametrize(
    "made", [boolean("A flag.", default=False), integer("A number.", default=0), string("A text.", default="")]
)
def test_a_default_may_be_false_zero_or_empty(made: Schema) -> None:
    assert "default" in made


def test_a_bound_may_be_zero() -> None:
    made = integer("A number.", at_least=0, at_most=0)
    assert (made["minimum"], made["maximum"]) == (0, 0)


def test_entries_of_a_list_with_a_key_are_merged_by_it() -> None:
    made = array("Things.", struct("A thing.", {"name*": string("Its name.")}), key="name")
    assert made["x-kubernetes-list-type"] == "map"
    assert made["x-kubernetes-list-map-keys"] == ["name"]


def test_other_lists_are_replaced_as_a_whole() -> None:
    assert schema.strings("Texts.")["x-kubernetes-list-type"] == "atomic"


def test_words_of_cel_are_escaped_in_rules_but_not_in_paths() -> None:
    made = schema.immutable_once_set("namespace")
    assert made["rule"] == (
        "!has(oldSelf.__namespace__) || (has(self.__namespace__) && self.__namespace__ == oldSelf.__namespace__)"
    )
    assert made["fieldPath"] == ".namespace"


def test_a_rule_on_a_path_looks_at_each_step() -> None:
    assert schema.not_removed("dns.domain", "no")["rule"] == (
        "!(has(oldSelf.dns) && has(oldSelf.dns.domain)) || (has(self.dns) && has(self.dns.domain))"
    )


def test_a_variant_has_more_fields_or_fewer() -> None:
    base = struct("A thing.", {"name": string("Its name."), "kind*": string("Its kind."), "size": integer("Its size.")})
    made = schema.with_fields(base, {"name*": string("Needed now.")}, without=["kind"])
    assert made["required"] == ["name"]
    assert set(made["properties"]) == {"name", "size"}
    assert base["required"] == ["kind"]


def test_a_template_has_no_defaults_but_those_that_it_keeps() -> None:
    base = struct("A thing.", {"a": integer("A.", default=1), "b": array("Bs.", integer("B.", default=2))}, default={})
    made = schema.without_defaults(base)
    assert "default" not in str(made)
    assert schema.without_defaults(base, keep=lambda field: field == "a")["properties"]["a"]["default"] == 1
