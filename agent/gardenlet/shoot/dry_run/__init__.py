"""Changes of a flow, determined by a dry run of its tasks.

    client      a client that records writes, and reads them back; it sends no write except dry runs
    components  records the objects of components in place of `ComponentObjects`
    secrets     generates no keys: a new Secret has a name, and placeholders as content
    waiting     accepts objects in any state
    statuses    computes statuses without writing them
    run         the tasks, one after the other; those after one that has no preview are skipped, too
    compare     recorded objects compared with live ones: as written when the flow runs, with the defaults of the API
                server from a dry run; objects that the resource manager applies are compared with the previous ones,
                from the Secrets of their ManagedResources
    rules       pure functions: the visible and the masked parts of an object

So a flow without changes has no difference, without any rule about the content of components.
"""
