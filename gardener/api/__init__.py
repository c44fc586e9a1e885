"""The APIs of Gardener: one description per kind, the source of everything else about the kind.

    garden/            the kinds of the garden API (core, seedmanagement, security, operations, settings)
        __init__.py        names of the kinds: one line each, a `Resource`. Agents and plugins load these only; the
                           descriptions cost 20 ms and 0.8 MiB
        <kind>.py          fields of the kind: its `Definition`; types that several kinds share are in `common`
        definitions.py     all of them
    extensions/        the same for the extension resources, druid/ for etcds
    kinds.py           names of other kinds that Gardener's programs work with; machines.py, istio.py,
                       vertical_pod_autoscaler.py, monitoring.py, fluent_bit.py and open_telemetry.py describe those
                       that a seed serves
    seed_definitions.py    definitions that a seed serves, by the program that uses them
    schema.py          vocabulary of a description
    definition.py      a description, its CustomResourceDefinition, and the files in `manifests/crds`
    structural.py      processing of an object by an API server, per its description; expressions.py: its CEL rules

A kind gets a line in the names, a module, and a line in `definitions`. Its CustomResourceDefinition and the columns and
short names that kubectl shows, the types that webhooks decode (`webhooks.garden.shapes`), their configurations, the
definitions that devcluster installs, the kinds of the offline check and the fuzzers: all derive from these.
"""
