"""DNSRecord: a name, and its targets."""

from gardener.api.definition import Column
from gardener.api.extensions import DNS_RECORDS
from gardener.api.extensions.common import definition, secret_reference
from gardener.api.schema import immutable, integer, string, strings

DNS_RECORD = definition(
    DNS_RECORDS,
    "A record of the Domain Name System.",
    spec={
        "secretRef*": secret_reference("Secret with the credentials for the DNS provider."),
        "region": string("Region of the provider. Default: that of the Secret, or of the extension."),
        "zone": string("Hosted zone. Default: the zone of the account with the longest name that fits."),
        "name*": string("Fully qualified domain name. Immutable.", at_least=1),
        "recordType*": string("Type of the record. Immutable.", enum=["A", "AAAA", "CNAME", "TXT"]),
        "values*": strings("Addresses, one domain name (CNAME) or texts (TXT).", at_least=1),
        "ttl": integer("Time to live of the record, in seconds. Default: 120.", at_least=0, bits=64),
    },
    status={"zone": string("Hosted zone of the record.")},
    columns=(Column("Domain Name", ".spec.name"), Column("Record Type", ".spec.recordType")),
    rules=[immutable("name"), immutable("recordType")],
)
