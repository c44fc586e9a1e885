"""The rules of DNSRecords and Networks."""

import pytest

from kit.webhooks.validating import DELETING, IP, NEEDED, SUBDOMAIN, answer, errors, shortened, spec_errors, valid
from kube.objects import Object
from webhooks.admission import Failure

SEGMENTS = "should be a domain with at least two segments separated by dots"
TYPES = '"A", "AAAA", "CNAME", "TXT"'
LONG = "a" * 64


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"region": ""}, ['region: Invalid value: "": field cannot be empty if specified']),
        ({"zone": ""}, ['zone: Invalid value: "": field cannot be empty if specified']),
        ({"region": "r", "zone": "z"}, []),
        ({"name": "*.example.com"}, []),
        ({"name": "example.com."}, []),
        ({"name": "example.com.."}, [f'name: Invalid value: "example.com.": {SUBDOMAIN}']),
        ({"name": "*.*.example.com"}, [f'name: Invalid value: "*.example.com": {SUBDOMAIN}']),
        ({"name": "_a.example.com"}, [f'name: Invalid value: "_a.example.com": {SUBDOMAIN}']),
        ({"name": "*."}, ["name: Required value"]),
        ({"name": ""}, ["name: Required value"]),
        ({"name": "com"}, [f'name: Invalid value: "com": {SEGMENTS}']),
        ({"name": f"a.{LONG}"}, [f'name: Invalid value: "{LONG}": must be no more than 63 characters']),
        ({"name": "." * 254}, [f'name: Invalid value: "{"." * 253}": {SUBDOMAIN}']),
        (
            {"name": ("A." * 130)[:-1]},
            [f'name: Invalid value: "{("A." * 130)[:-1]}": must be no more than 253 characters,{SUBDOMAIN}'],
        ),
        ({"recordType": "TXT", "name": "_a.example.com", "values": ["any thing", ""]}, []),
        ({"recordType": "TXT", "name": "__a.b"}, [f'name: Invalid value: "_a.b": {SUBDOMAIN}']),
        ({"recordType": "TXT", "name": "*.a.b"}, [f'name: Invalid value: "*.a.b": {SUBDOMAIN}']),
        ({"recordType": ""}, [f'recordType: Unsupported value: "": supported values: {TYPES}']),
        ({"recordType": "MX", "values": ["any"]}, [f'recordType: Unsupported value: "MX": supported values: {TYPES}']),
        ({"values": []}, [f"values: {NEEDED}"]),
        ({"values": None}, [f"values: {NEEDED}"]),
        ({"values": ["1.2.3.4", "::1", "2001:DB8::1"]}, []),
        ({"recordType": "AAAA", "values": ["1.2.3.4", "::1"]}, []),
        ({"values": ["a"]}, [f'values[0]: Invalid value: "a": {IP}']),
        ({"values": ["1.2.3.4", ""]}, [f'values[1]: Invalid value: "": {IP}']),
        ({"values": ["01.2.3.4"]}, [f'values[0]: Invalid value: "01.2.3.4": {IP}']),
        ({"values": ["fe80::1%eth0"]}, [f'values[0]: Invalid value: "fe80::1%eth0": {IP}']),
        ({"values": ["1.2.3.4/24"]}, [f'values[0]: Invalid value: "1.2.3.4/24": {IP}']),
        ({"values": ["::" + "0" * 200]}, [f'values[0]: Invalid value: "::{"0" * 200}": {IP}']),
        (
            {"values": ["::ffff:1.2.3.4"]},
            ['values[0]: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address'],
        ),
        ({"recordType": "CNAME", "values": ["a.b."]}, []),
        ({"recordType": "CNAME", "values": [""]}, ["values[0]: Required value"]),
        ({"recordType": "CNAME", "values": ["*.a.b"]}, [f'values[0]: Invalid value: "*.a.b": {SUBDOMAIN}']),
        (
            {"recordType": "CNAME", "values": ["a.b", "c.d"]},
            ['values: Invalid value: ["a.b","c.d"]: CNAME records must have a single value'],
        ),
        ({"ttl": 0}, []),
        ({"ttl": 2147483647}, []),
        ({"ttl": -1}, ["ttl: Invalid value: -1: must be between 0 and 2147483647, inclusive"]),
        ({"ttl": 2147483648}, ["ttl: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive"]),
        ({"type": None, "secretRef": {}}, [f"type: {NEEDED}", f"secretRef.name: {NEEDED}"]),
    ],
)
def test_dns_records(spec: Object, found: list[str]) -> None:
    assert shortened(spec_errors("DNSRecord", **spec)) == [f"spec.{error}" for error in found]


def test_a_record_with_two_mistakes() -> None:
    record = valid("DNSRecord", meta={"name": "n"}, recordType="CNAME", values=["a.b", "c"], name="*.x.io")
    found = answer("DNSRecord", record)
    assert isinstance(found, Failure)
    assert (found.status["code"], found.status["reason"]) == (422, "Invalid")
    assert found.status["message"] == (
        'DNSRecord.extensions.gardener.cloud "n" is invalid: '
        '[spec.values: Invalid value: ["a.b","c"]: CNAME records must have a single value, '
        f'spec.values[1]: Invalid value: "c": {SEGMENTS}]'
    )
    assert found.status["details"]["causes"][1] == {
        "reason": "FieldValueInvalid",
        "message": f'Invalid value: "c": {SEGMENTS}',
        "field": "spec.values[1]",
    }


V6 = {"podCIDR": "2001:db8:1::/48", "serviceCIDR": "2001:db8:2::/112"}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"type": ""}, [f"type: {NEEDED}"]),
        ({"podCIDR": None}, [f"podCIDR: {NEEDED}"]),
        ({"podCIDR": "", "serviceCIDR": ""}, [f"podCIDR: {NEEDED}", f"serviceCIDR: {NEEDED}"]),
        ({"podCIDR": "10.0.0.1/16"}, []),
        ({"podCIDR": "x"}, ['podCIDR: Invalid value: "x": invalid CIDR address: x']),
        ({"podCIDR": "10.0.0.0"}, ['podCIDR: Invalid value: "10.0.0.0": invalid CIDR address: 10.0.0.0']),
        ({"podCIDR": "10.0.0.0/33"}, ['podCIDR: Invalid value: "10.0.0.0/33": invalid CIDR address: 10.0.0.0/33']),
        ({"podCIDR": "010.0.0.0/8"}, ['podCIDR: Invalid value: "010.0.0.0/8": invalid CIDR address: 010.0.0.0/8']),
        (
            {"podCIDR": "10.0.0.0/255.255.0.0"},
            ['podCIDR: Invalid value: "10.0.0.0/255.255.0.0": invalid CIDR address: 10.0.0.0/255.255.0.0'],
        ),
        (
            {"podCIDR": "x", "serviceCIDR": ""},
            [f"serviceCIDR: {NEEDED}", 'podCIDR: Invalid value: "x": invalid CIDR address: x'],
        ),
        (
            {"podCIDR": "2001:db8::1/64"},
            ['podCIDR: Invalid value: "2001:db8::": must be a valid IPv4 address'],
        ),
        (
            {"ipFamilies": ["IPv6"]},
            [
                'podCIDR: Invalid value: "10.0.0.0": must be a valid IPv6 address',
                'serviceCIDR: Invalid value: "10.1.0.0": must be a valid IPv6 address',
            ],
        ),
        ({"ipFamilies": ["IPv6"], **V6}, []),
        ({"ipFamilies": ["IPv6"], "podCIDR": "2001:db8::/32", "serviceCIDR": "2001:db8:2::/112"}, []),
        ({"ipFamilies": ["IPv4", "IPv6"]}, []),
        ({"ipFamilies": ["IPv4", "IPv6"], **V6}, []),
        (
            {"podCIDR": "10.0.0.0/8"},
            ['serviceCIDR: Invalid value: "10.1.0.0/16": must not overlap with "spec.podCIDR" ("10.0.0.0/8")'],
        ),
        (
            {"podCIDR": "10.1.2.3/32"},
            ['serviceCIDR: Invalid value: "10.1.0.0/16": must not overlap with "spec.podCIDR" ("10.1.2.3/32")'],
        ),
        (
            {"ipFamilies": ["IPv6", "IPv4"], "podCIDR": "2001:db8::/32", "serviceCIDR": "2001:db8:2::/112"},
            ['serviceCIDR: Invalid value: "2001:db8:2::/112": must not overlap with "spec.podCIDR" ("2001:db8::/32")'],
        ),
        (
            {"type": "", "ipFamilies": ["x", "IPv4", "x"], "podCIDR": "y"},
            [
                f"type: {NEEDED}",
                'ipFamilies[0]: Unsupported value: "x": supported values: "IPv4", "IPv6"',
                'ipFamilies[2]: Unsupported value: "x": supported values: "IPv4", "IPv6"',
                'ipFamilies[2]: Duplicate value: "x"',
            ],
        ),
        ({"ipFamilies": ["IPv4", "IPv4"]}, ['ipFamilies[1]: Duplicate value: "IPv4"']),
    ],
)
def test_networks(spec: Object, found: list[str]) -> None:
    assert spec_errors("Network", **spec) == [f"spec.{error}" for error in found]


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (["IPv4"], ["IPv4", "IPv6"], True),
        (["IPv4", "IPv6"], ["IPv4"], True),
        (None, [], True),
        (["IPv4"], None, False),
        (None, ["IPv4"], False),
        (["IPv4"], ["IPv6", "IPv4"], False),
        (["IPv4", "IPv6"], ["IPv6", "IPv4"], False),
    ],
)
def test_updates_of_ip_families(old: list[str] | None, new: list[str] | None, allowed: bool) -> None:
    found = errors("Network", valid("Network", ipFamilies=new), valid("Network", ipFamilies=old))
    shown = f"oldIPFamilies=[{' '.join(old or [])}], newIPFamilies=[{' '.join(new or [])}]"
    assert found == ([] if allowed else [f"spec.ipFamilies: Forbidden: unsupported IP family update: {shown}"])


def test_ip_families_come_first_when_a_network_changes() -> None:
    new = valid("Network", type="u", podCIDR="10.4.0.0/16", serviceCIDR="10.5.0.0/16", ipFamilies=["IPv4", "IPv6"])
    fields = [error.partition(":")[0] for error in errors("Network", new, valid("Network"))]
    assert fields == ["spec.ipFamilies", "spec.type", "spec.podCIDR", "spec.serviceCIDR"]


def test_what_an_update_would_change_in_a_network() -> None:
    old = valid("Network", meta=DELETING, podCIDR="10.0.0.1/8", serviceCIDR="", ipFamilies=["x"])
    new = valid("Network", meta=DELETING, podCIDR="10.0.0.0/8")
    assert errors("Network", new, old)[0].endswith(
        "Requested changes: PodCIDR: 10.0.0.0/8 != 10.0.0.1/8,ServiceCIDR: 10.1.0.0/16 != ,IPFamilies: <nil slice> != [x]"
    )
