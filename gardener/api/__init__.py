"""The APIs of Gardener: one description a kind, from which all that is said of the kind elsewhere derives.

    garden/            the kinds of the garden API (core, seedmanagement, security, operations, settings)
        __init__.py        what each is called: a line, a `Resource`. Agents and plugins load these names only; the
                           descriptions cost 20 ms and 0.8 MiB
        <kind>.py          what it consists of: its `Definition`; types that several kinds share are in `common`
        definitions.py     all of them
    extensions/        the same of the extension resources, druid/ of etcds
    kinds.py           what other kinds are called that Gardener's programs work with; machines.py,
                       vertical_pod_autoscaler.py, monitoring.py and istio.py describe those that a seed serves
    seed_definitions.py    what a seed serves, by the program that it is for
    schema.py          the words of a description
    definition.py      a description, its CustomResourceDefinition, and the files in `manifests/crds`
    structural.py      what an API server does with an object by its description; expressions.py: its rules of CEL

A kind gets a line in the names, a module, and a line in `definitions`. Its CustomResourceDefinition and the columns and
short names that kubectl shows, the types that webhooks decode (`webhooks.garden.shapes`), their configurations, what
devcluster installs, what the offline check and the fuzzers know: all derive from these.
"""
