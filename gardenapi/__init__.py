"""What programs ask of a garden that two kinds of API servers answer in different ways.

The original's aggregated API server has subresources, and raises the generation of an object for its annotations. On a
plain API server, which serves CustomResourceDefinitions and asks the webhooks of `webhooks.garden`, the same is done by
other means. Programs use `GardenApi` for it and nothing else; `recognized` finds out which of the two they talk to.

    garden = await recognized(client)
    await garden.bind(shoot, "seed-1")
    await garden.operate(SEEDS, "seed-1", "reconcile")
    if garden.needs_work(shoot): ...
"""
