"""Kubeconfigs are read from YAML and JSON, and written in one form."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from agent.shared.token_requestor.rules.kubeconfig import KubeconfigError, current_cluster, current_user, decode, encode

JSON = (
    '{"kind":"Config","apiVersion":"v1","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k",'
    '"user":"u"}}],"clusters":[{"name":"k","cluster":{"server":"https://s"}}],"users":[{"name":"u","user":{}},'
    '{"name":"v","user":{"token":"old"}}],"foo":1}'
)
YAML = """\
apiVersion: v1
clusters:
- cluster:
    server: https://s
  name: k
contexts:
- context:
    cluster: k
    user: u
  name: c
current-context: c
kind: Config
users:
- name: u
  user:
    token: NEW
- name: v
  user:
    token: old
"""


def config(**changes: Any) -> bytes:
    return json.dumps({**json.loads(JSON), **changes}).encode()


def user(**fields: Any) -> bytes:
    return config(users=[{"name": "u", "user": fields}])


def written(content: bytes) -> Any:
    return yaml.safe_load(encode(decode(content)))


def test_json_becomes_yaml() -> None:
    decoded = decode(JSON.encode())
    current_user(decoded)["token"] = "NEW"
    assert encode(decoded).decode() == YAML


def test_what_was_written_reads_the_same() -> None:
    assert encode(decode(YAML.encode())).decode() == YAML


def test_json_may_be_indented_with_tabs() -> None:
    indented = json.dumps(json.loads(JSON), indent="\t")
    assert decode(indented.encode()) == decode(JSON.encode())


@pytest.mark.parametrize("text", ["y", "n", "on", "1e3", "0o17", "12:30", "null", "~", "", "=", "0x1", "2020-01-01"])
def test_text_stays_text_for_every_reader(text: str) -> None:
    again = decode(encode(decode(user(token=text, username="x"))))
    assert current_user(again).get("token", "") == text


def test_long_and_odd_texts_survive() -> None:
    fields = {"token": "a" * 5000, "username": "two\nlines", "password": "ü: - #'\" \t", "tokenFile": " x "}
    assert current_user(decode(encode(decode(user(**fields))))) == fields
    assert b"a" * 5000 in encode(decode(user(**fields)))


ENV = {"name": "n", "value": "v"}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {}),
        ({"token": "", "as-groups": [], "unknown": {"x": 1}}, {}),
        ({"client-certificate-data": "Y2E=", "client-key": "k"}, None),
        ({"tokenFile": "/t", "token": "x"}, None),
        ({"as": "a", "as-uid": "1", "as-groups": ["g"]}, None),
        ({"as-user-extra": {"Some_Key": ["v"]}}, None),
        (
            {"exec": {"command": "x", "apiVersion": "v1"}},
            {"exec": {"command": "x", "apiVersion": "v1", "args": None, "env": None, "provideClusterInfo": False}},
        ),
        (
            {"exec": {"args": ["a"], "env": [ENV], "provideClusterInfo": True}},
            {"exec": {"command": "", "args": ["a"], "env": [ENV], "provideClusterInfo": True}},
        ),
        ({"auth-provider": {"name": "gcp"}}, {"auth-provider": {"name": "gcp", "config": None}}),
        ({"auth-provider": {"config": {"a": "b"}}}, {"auth-provider": {"name": "", "config": {"a": "b"}}}),
        ({"extensions": [{"name": "e", "extension": {"any": [1]}}]}, None),
    ],
)
def test_users_keep_what_users_have(given: dict[str, Any], wanted: dict[str, Any] | None) -> None:
    assert written(user(**given))["users"][0]["user"] == (given if wanted is None else wanted)


def test_clusters_and_contexts_keep_what_they_have() -> None:
    cluster = {
        "server": "",
        "tls-server-name": "t",
        "insecure-skip-tls-verify": True,
        "certificate-authority": "f",
        "certificate-authority-data": "Y2E=",
        "proxy-url": "p",
        "disable-compression": True,
    }
    context = {"cluster": "k", "user": "u", "namespace": "n"}
    found = written(
        config(clusters=[{"name": "k", "cluster": cluster}], contexts=[{"name": "c", "context": context}, None])
    )
    assert found["clusters"] == [{"name": "k", "cluster": cluster}]
    assert found["contexts"] == [
        {"name": "c", "context": context},
        {"name": "", "context": {"cluster": "", "user": ""}},
    ]


@pytest.mark.parametrize(("given", "wanted"), [({"preferences": {}}, True), ({}, False)])
def test_preferences_are_written_if_there_were_some(given: dict[str, Any], wanted: bool) -> None:
    assert ("preferences" in written(config(**given))) is wanted


def test_kind_and_version_may_be_left_out_and_are_written() -> None:
    bare = {name: value for name, value in json.loads(JSON).items() if name not in {"kind", "apiVersion"}}
    assert written(json.dumps(bare).encode()) == written(JSON.encode())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"abc", "it must be a mapping"),
        (b"[]", "it must be a mapping"),
        (b"a: *secret", "it is neither YAML nor JSON (line 1)"),
        (b"\xff\xfe\x00", "it is neither YAML nor JSON"),
        (config(kind="Secret"), "kind must be Config if set"),
        (config(apiVersion="v2"), "apiVersion must be v1 if set"),
        (config(kind=[]), "kind must be Config if set"),
        (config(users={}), "users must be a list"),
        (config(users=["x"]), "users[0] must be a mapping"),
        (user(token=1), "users[0].user.token must be a string; put it into quotes"),
        (user(**{"client-key-data": "s-e-c-r-e-t"}), "users[0].user.client-key-data must be base64"),
        (user(**{"as-groups": [1]}), "users[0].user.as-groups[0] must be a string; put it into quotes"),
        (user(**{"as-user-extra": {"hush": "x"}}), "a value of users[0].user.as-user-extra must be a list"),
        (
            config(clusters=[{"cluster": {"insecure-skip-tls-verify": "yes"}}]),
            "clusters[0].cluster.insecure-skip-tls-verify must be true or false",
        ),
    ],
)
def test_what_is_no_kubeconfig_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(KubeconfigError) as raised:
        decode(content)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("content", "find", "missing"),
    [
        (b"", current_user, "context defined in current context"),
        (config(**{"current-context": "zz"}), current_user, "context defined in current context"),
        (config(users=None), current_user, "authInfo of current context named u"),
        (config(clusters=[]), current_cluster, "cluster of current context named k"),
    ],
)
def test_contexts_users_and_clusters_that_are_missing_are_named(
    content: bytes, find: Callable[[Any], object], missing: str
) -> None:
    with pytest.raises(KubeconfigError, match=f"^did not find {missing}$"):
        find(decode(content))


def test_a_bomb_of_aliases_is_refused() -> None:
    levels = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    with pytest.raises(KubeconfigError, match="neither YAML nor JSON"):
        decode(f"a0: &a0 [x]\n{levels}".encode())
