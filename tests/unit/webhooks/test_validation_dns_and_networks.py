import pytest

from kit.webhooks.validating import (
    DELETING,
    IP,
    NEEDED,
    SUBDOMAIN,
    answer,
    errors,
    fields,
    invalid,
    shortened,
    spec_errors,
    unsupported,
    valid,
)
from kube.objects import Object
from webhooks.admission import Failure

ONE_VALUE = "CNAME records must have a single value"
TTL = "must be between 0 and 2147483647, inclusive"
SEGMENTS = "should be a domain with at least two segments separated by dots"
MAPPED = "must not be an IPv4-mapped IPv6 address"
TYPES = ("A", "AAAA", "CNAME", "TXT")
LONG, VERY_LONG = "a" * 64, ("A." * 130)[:-1]
NO_CIDR, NO_V6 = "invalid CIDR address: x", "must be a valid IPv6 address"
NO_FAMILY, OVERLAP = unsupported("x", "IPv4", "IPv6"), 'must not overlap with "spec.podCIDR"'
V6 = {"podCIDR": "2001:db8:1::/48", "serviceCIDR": "2001:db8:2::/112"}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"region": ""}, [invalid("region", "", "field cannot be empty if specified")]),
        ({"zone": ""}, [invalid("zone", "", "field cannot be empty if specified")]),
        ({"region": "r", "zone": "z"}, []),
        ({"name": "*.example.com"}, []),
        ({"name": "example.com."}, []),
        ({"name": "example.com.."}, [invalid("name", "example.com.", SUBDOMAIN)]),
        ({"name": "*.*.example.com"}, [invalid("name", "*.example.com", SUBDOMAIN)]),
        ({"name": "_a.example.com"}, [invalid("name", "_a.example.com", SUBDOMAIN)]),
        ({"name": "*."}, ["name: Required value"]),
        ({"name": ""}, ["name: Required value"]),
        ({"name": "com"}, [invalid("name", "com", SEGMENTS)]),
        ({"name": f"a.{LONG}"}, [invalid("name", LONG, "must be no more than 63 characters")]),
        ({"name": "." * 254}, [invalid("name", "." * 253, SUBDOMAIN)]),
        ({"name": VERY_LONG}, [invalid("name", VERY_LONG, f"must be no more than 253 characters,{SUBDOMAIN}")]),
        ({"recordType": "TXT", "name": "_a.example.com", "values": ["any thing", ""]}, []),
        ({"recordType": "TXT", "name": "__a.b"}, [invalid("name", "_a.b", SUBDOMAIN)]),
        ({"recordType": "TXT", "name": "*.a.b"}, [invalid("name", "*.a.b", SUBDOMAIN)]),
        ({"recordType": ""}, [f"recordType: {unsupported('', *TYPES)}"]),
        ({"recordType": "MX", "values": ["any"]}, [f"recordType: {unsupported('MX', *TYPES)}"]),
        ({"values": []}, [f"values: {NEEDED}"]),
        ({"values": None}, [f"values: {NEEDED}"]),
        ({"values": ["1.2.3.4", "::1", "2001:DB8::1"]}, []),
        ({"recordType": "AAAA", "values": ["1.2.3.4", "::1"]}, []),
        ({"values": ["a"]}, [invalid("values[0]", "a", IP)]),
        ({"values": ["1.2.3.4", ""]}, [invalid("values[1]", "", IP)]),
        ({"values": ["01.2.3.4"]}, [invalid("values[0]", "01.2.3.4", IP)]),
        ({"values": ["fe80::1%eth0"]}, [invalid("values[0]", "fe80::1%eth0", IP)]),
        ({"values": ["1.2.3.4/24"]}, [invalid("values[0]", "1.2.3.4/24", IP)]),
        ({"values": ["::" + "0" * 200]}, [invalid("values[0]", "::" + "0" * 200, IP)]),
        ({"values": ["::ffff:1.2.3.4"]}, [invalid("values[0]", "::ffff:1.2.3.4", MAPPED)]),
        ({"recordType": "CNAME", "values": ["a.b."]}, []),
        ({"recordType": "CNAME", "values": [""]}, ["values[0]: Required value"]),
        ({"recordType": "CNAME", "values": ["*.a.b"]}, [invalid("values[0]", "*.a.b", SUBDOMAIN)]),
        ({"recordType": "CNAME", "values": ["a.b", "c.d"]}, [invalid("values", ["a.b", "c.d"], ONE_VALUE)]),
        ({"ttl": 0}, []),
        ({"ttl": 2147483647}, []),
        ({"ttl": -1}, [invalid("ttl", -1, TTL)]),
        ({"ttl": 2147483648}, [invalid("ttl", 2147483648, TTL)]),
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
    cause = {"reason": "FieldValueInvalid", "message": f'Invalid value: "c": {SEGMENTS}', "field": "spec.values[1]"}
    assert found.status["details"]["causes"][1] == cause


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"type": ""}, [f"type: {NEEDED}"]),
        ({"podCIDR": None}, [f"podCIDR: {NEEDED}"]),
        ({"podCIDR": "", "serviceCIDR": ""}, [f"podCIDR: {NEEDED}", f"serviceCIDR: {NEEDED}"]),
        ({"podCIDR": "10.0.0.1/16"}, []),
        *(
            ({"podCIDR": cidr}, [invalid("podCIDR", cidr, f"invalid CIDR address: {cidr}")])
            for cidr in ("x", "10.0.0.0", "10.0.0.0/33", "010.0.0.0/8", "10.0.0.0/255.255.0.0")
        ),
        ({"podCIDR": "x", "serviceCIDR": ""}, [f"serviceCIDR: {NEEDED}", invalid("podCIDR", "x", NO_CIDR)]),
        ({"podCIDR": "2001:db8::1/64"}, [invalid("podCIDR", "2001:db8::", "must be a valid IPv4 address")]),
        ({"ipFamilies": ["IPv6"]}, [invalid("podCIDR", "10.0.0.0", NO_V6), invalid("serviceCIDR", "10.1.0.0", NO_V6)]),
        ({"ipFamilies": ["IPv6"], **V6}, []),
        ({"ipFamilies": ["IPv6"], "podCIDR": "2001:db8::/32", "serviceCIDR": "2001:db8:2::/112"}, []),
        ({"ipFamilies": ["IPv4", "IPv6"]}, []),
        ({"ipFamilies": ["IPv4", "IPv6"], **V6}, []),
        *(
            ({"podCIDR": cidr}, [invalid("serviceCIDR", "10.1.0.0/16", f'{OVERLAP} ("{cidr}")')])
            for cidr in ("10.0.0.0/8", "10.1.2.3/32")
        ),
        (
            {"ipFamilies": ["IPv6", "IPv4"], "podCIDR": "2001:db8::/32", "serviceCIDR": "2001:db8:2::/112"},
            [invalid("serviceCIDR", "2001:db8:2::/112", f'{OVERLAP} ("2001:db8::/32")')],
        ),
        (
            {"type": "", "ipFamilies": ["x", "IPv4", "x"], "podCIDR": "y"},
            [
                f"type: {NEEDED}",
                *(f"ipFamilies[{n}]: {NO_FAMILY}" for n in (0, 2)),
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
    found = fields(errors("Network", new, valid("Network")))
    assert found == ["spec.ipFamilies", "spec.type", "spec.podCIDR", "spec.serviceCIDR"]


def test_what_an_update_would_change_in_a_network() -> None:
    old = valid("Network", meta=DELETING, podCIDR="10.0.0.1/8", serviceCIDR="", ipFamilies=["x"])
    new = valid("Network", meta=DELETING, podCIDR="10.0.0.0/8")
    assert errors("Network", new, old)[0].endswith(
        "Requested changes: PodCIDR: 10.0.0.0/8 != 10.0.0.1/8,ServiceCIDR: 10.1.0.0/16 != ,IPFamilies: <nil slice> != [x]"
    )
