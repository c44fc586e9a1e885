"""What is done next for a ManagedSeedSet, and what its status says: pure.

    steps     what is done next
    objects   what a replica consists of
    merging   changes of templates brought into a replica
    history   revisions: when there is a new one, and which are kept
    status    what the status says

What plugins and admission need, too, is in `gardener.garden.managed_seed_set`.
"""
