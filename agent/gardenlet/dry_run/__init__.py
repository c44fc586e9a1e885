"""What a flow would change, found out by running its tasks without carrying anything out.

    client      a view of a client that records what is written, and reads it back; it sends no write but a dry run
    components  takes the objects of components in place of `ComponentObjects`
    secrets     makes no key: what would be made has a name, and nothing in it
    waiting     takes objects as they are
    statuses    computes what would be written, and writes nothing
    run         the tasks, one after the other; those after one that can't be carried out are left out, too
    compare     what was recorded, with what is there: as it is written when the flow runs, with the defaults of the
                API server, of which a dry run is asked; objects that the resource manager applies are compared with
                those before, out of the Secrets of their ManagedResources
    rules       what is shown of an object, and hidden: pure

So a flow that has nothing to do has no difference, without any rule about what a component consists of.
"""
