from typing import Any

import pytest

from kit.webhooks.validating import (
    DELETING,
    NEEDED,
    SUBDOMAIN,
    below,
    errors,
    invalid,
    shortened,
    spec_errors,
    unsupported,
    valid,
)
from kube.objects import Object

KIND = "OperatingSystemConfig"
ONE_CONTENT = "either 'secretRef', 'inline' or 'imageRef' must be provided"
UNMATCHED = "Invalid value: \"/b\": 'filePath' requires a matching 'path' in 'spec.files'"
HOST = "host must be provided; desired format: https://host[:port]"
EMPTY = '{"inline":{"encoding":"","data":""},"transmitUnencoded":false,"imageRef":{"image":"","filePathInImage":""}}'
BOTH = {"secretRef": {"name": "s", "dataKey": "k"}, "inline": {"data": "x"}}
PROVISIONS = "containerd config is not allowed for OperatingSystemConfig with purpose 'provision'"
PORTS = "valid port must be in the range [1, 65535]"
NO_JSON = "provided values must be given in json format"


def file(path: str = "/a", **more: Any) -> Object:
    return {"path": path, "content": {"inline": {"data": "x"}}, **more}


def several(contents: str) -> str:
    return f": Invalid value: {contents}: {ONE_CONTENT}, not multiple at the same time"


def content_errors(content: Object) -> list[str]:
    found = spec_errors(KIND, files=[{"path": "/a", "content": content}])
    return [error.removeprefix(".") for error in below("spec.files[0].content", found)]


def containerd_errors(**config: Any) -> list[str]:
    found = spec_errors(KIND, criConfig={"name": "containerd", "containerd": {"sandboxImage": "i", **config}})
    return shortened(below("spec.criConfig.containerd.", found))


@pytest.mark.parametrize(
    ("purpose", "found"),
    [
        ("provision", []),
        ("", [f"spec.purpose: {NEEDED}"]),
        ("x", [f"spec.purpose: {unsupported('x', 'provision', 'reconcile')}"]),
    ],
)
def test_purposes(purpose: str, found: list[str]) -> None:
    assert spec_errors(KIND, purpose=purpose, type=None) == found


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({}, [f": Required value: {ONE_CONTENT}"]),
        ({"transmitUnencoded": True}, [f": Required value: {ONE_CONTENT}"]),
        ({"secretRef": {"name": "s", "dataKey": "k"}}, []),
        ({"secretRef": {}}, [f"secretRef.name: {NEEDED}", f"secretRef.dataKey: {NEEDED}"]),
        ({"inline": {"data": "x", "encoding": "b64"}}, []),
        ({"inline": {}}, [f"inline.data: {NEEDED}"]),
        (
            {"inline": {"encoding": "gzip"}},
            [f"inline.encoding: {unsupported('gzip', '', 'b64')}", f"inline.data: {NEEDED}"],
        ),
        ({"imageRef": {"image": "i", "filePathInImage": "/f"}}, []),
        ({"imageRef": {}}, [f"imageRef.image: {NEEDED}", f"imageRef.filePathInImage: {NEEDED}"]),
        (BOTH, [several('{"secretRef":{"name":"s","dataKey":"k"},"inline":{"encoding":"","data":"x"}}')]),
        ({"inline": {}, "imageRef": {}, "transmitUnencoded": False}, [several(EMPTY)]),
    ],
)
def test_contents_of_files(content: Object, found: list[str]) -> None:
    assert content_errors(content) == found


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"files": [file(), file("")]}, [f"spec.files[1].path: {NEEDED}"]),
        ({"files": [file(), file("/b"), file()]}, ['spec.files[2].path: Duplicate value: "/a"']),
        ({"files": [file(""), file(""), file()]}, [f"spec.files[{index}].path: {NEEDED}" for index in (0, 1)]),
        ({"files": [file(hostName="a"), file(hostName="b"), file(hostName="c")]}, []),
        *(
            ({"files": [file(hostName=name) for name in names]}, ['spec.files[2].path: Duplicate value: "/a"'])
            for names in ("aba", "abb")
        ),
        ({"files": [file(hostName="a"), file()]}, ['spec.files[1].path: Duplicate value: "/a"']),
        ({"files": [file(), file(hostName="a")]}, ['spec.files[1].path: Duplicate value: "/a"']),
        ({"files": [file(hostName="A_")]}, [invalid("spec.files[0].hostName", "A_", SUBDOMAIN)]),
        ({"files": [file(hostName="")]}, [invalid("spec.files[0].hostName", "", SUBDOMAIN)]),
        ({"units": [{}]}, [f"spec.units[0].name: {NEEDED}"]),
        (
            {"units": [{"name": "u", "dropIns": [{}]}]},
            [f"spec.units[0].dropIns[0].{name}: {NEEDED}" for name in ("name", "content")],
        ),
        ({"units": [{"name": "u", "filePaths": ["/a", "/b"]}]}, [f"spec.units[0].filePaths[1]: {UNMATCHED}"]),
    ],
)
def test_files_and_units(spec: Object, found: list[str]) -> None:
    assert shortened(spec_errors(KIND, **spec)) == found


def test_what_an_extension_adds_keeps_the_same_rules() -> None:
    config = valid(KIND, units=[{"name": "u", "filePaths": ["/added"]}])
    config["status"] = {"extensionUnits": [{"filePaths": ["/a"]}], "extensionFiles": [file("/added")]}
    assert errors(KIND, config) == [f"status.extensionUnits[0].name: {NEEDED}"]
    config["status"] = {"extensionFiles": [file("/added"), file(), {"path": ""}]}
    assert errors(KIND, config) == [
        f"status.extensionFiles[2].path: {NEEDED}",
        f"status.extensionFiles[2].content: Required value: {ONE_CONTENT}",
        'status.extensionFiles[1].path: Duplicate value: "/a"',
    ]


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"cgroupDriver": "systemd"}, []),
        ({"cgroupDriver": ""}, [f"cgroupDriver: {unsupported('', 'cgroupfs', 'systemd')}"]),
        (
            {"cgroupDriver": "x", "containerd": {"registries": [{}]}},
            [f"cgroupDriver: {unsupported('x', 'cgroupfs', 'systemd')}", f"containerd: Forbidden: {PROVISIONS}"],
        ),
    ],
)
def test_provisioning_knows_the_cgroup_driver_and_configures_no_containerd(config: Object, found: list[str]) -> None:
    assert spec_errors(KIND, purpose="provision", criConfig=config) == [f"spec.criConfig.{error}" for error in found]


def no_url(text: str, problem: str) -> str:
    return f'Required value: url must be a valid URL: parse "{text}": {problem}; desired format: https://host[:port]'


@pytest.mark.parametrize(
    ("registry", "found"),
    [
        ({"upstream": "a.b"}, []),
        ({"upstream": "_default"}, []),
        ({"upstream": "localhost:5000"}, []),
        ({"upstream": "a:65535"}, []),
        ({"upstream": ""}, [invalid("upstream", "", SUBDOMAIN)]),
        ({"upstream": "a:b"}, [invalid("upstream", "a:b", SUBDOMAIN)]),
        ({"upstream": "a:"}, [invalid("upstream", "a:", SUBDOMAIN)]),
        *(
            ({"upstream": f"a:{port}"}, [f"upstream: Invalid value: \"a:{port}\": port '{port}' is not valid, {PORTS}"])
            for port in ("0", "65536", "080", "100000")
        ),
        ({"upstream": "a", "server": "https://b:5000/v2"}, []),
        ({"upstream": "a", "server": "HTTP://b"}, []),
        ({"upstream": "a", "server": "ftp://b"}, [f"server: {unsupported('ftp', 'http', 'https')}"]),
        ({"upstream": "a", "server": "https://"}, [invalid("server", "", HOST)]),
        ({"upstream": "a", "server": ""}, [f"server: {unsupported('', 'http', 'https')}", invalid("server", "", HOST)]),
        (
            {"upstream": "a", "server": "https://b:c"},
            ["server: " + no_url("https://b:c", 'invalid port ":c" after host')],
        ),
        ({"upstream": "a", "hosts": [{"url": "ftp://b", "capabilities": ["push", "pull", "resolve"]}]}, []),
        ({"upstream": "a", "hosts": [{}]}, [invalid("hosts[0].url", "", HOST)]),
        ({"upstream": "a", "hosts": [{"url": "://b"}]}, ["hosts[0].url: " + no_url("://b", "missing protocol scheme")]),
        (
            {"upstream": "a", "hosts": [{"url": "//b", "capabilities": ["pull", "x"]}]},
            [f"hosts[0].capabilities[1]: {unsupported('x', 'push', 'pull', 'resolve')}"],
        ),
    ],
)
def test_registries(registry: Object, found: list[str]) -> None:
    assert containerd_errors(registries=[registry]) == [f"registries[0].{error}" for error in found]


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"registries": [{"upstream": name} for name in "aba"]}, 'registries[2].upstream: Duplicate value: "a"'),
        ({"sandboxImage": ""}, f"sandboxImage: {NEEDED}"),
    ],
)
def test_a_registry_has_one_configuration_and_sandboxes_need_an_image(config: Object, error: str) -> None:
    assert containerd_errors(**config) == [error]


@pytest.mark.parametrize(
    ("plugin", "found"),
    [
        ({"path": ["a"]}, []),
        ({"path": ["a"], "values": {"x": [1]}}, []),
        ({"path": ["a"], "values": None}, []),
        ({"path": ["a"], "op": "remove"}, []),
        ({"path": ["a"], "op": "remove", "values": None}, []),
        ({}, ["path: Required value: must provide a path"]),
        ({"path": ["a"], "op": "x"}, [f"op: {unsupported('x', 'add', 'remove')}"]),
        (
            {"path": ["a"], "op": "remove", "values": {}},
            ["values: Forbidden: values must not be specified when 'remove' operation is used"],
        ),
        ({"path": ["a"], "values": ["x", 1]}, [f'values: Invalid value: "[\\"x\\",1]": {NO_JSON}']),
        ({"path": ["a"], "values": 1}, [invalid("values", "1", NO_JSON)]),
    ],
)
def test_plugins(plugin: Object, found: list[str]) -> None:
    assert containerd_errors(plugins=[plugin]) == [f"plugins[0].{error}" for error in found]


def test_what_an_update_would_change_in_a_config() -> None:
    old = valid(KIND, meta=DELETING, criConfig={"name": "containerd"}, files=[file()])
    new = valid(KIND, meta=DELETING, files=[file(permissions=0o644, hostName="h"), file("/b")])
    (error,) = errors(KIND, new, old)
    assert error.split("Requested changes: ")[1].split(",") == [
        "CRIConfig: <nil pointer> != v1alpha1.CRIConfig",
        "Files.slice[0].Permissions: uint32 != <nil pointer>",
        "Files.slice[0].HostName: string != <nil pointer>",
        "Files.slice[1]: {/b <nil> {<nil> { x} <nil> <nil>} <nil>} != <no value>",
    ]
