"""Access to functions of a garden that two kinds of API servers provide in different ways.

The original's aggregated API server has subresources, and raises the generation of an object for its annotations. On a
plain API server, which serves CustomResourceDefinitions and calls the webhooks of `webhooks.garden`, other means
replace these. Programs only use `GardenApi`; `recognized` detects the kind of the API server.

    garden = await recognized(client)
    await garden.bind(shoot, "seed-1")
    await garden.operate(SEEDS, "seed-1", "reconcile")
    if garden.needs_work(shoot): ...
"""
