"""Next steps for a ManagedSeedSet, and its status: pure functions.

    steps     the next step
    objects   objects of a replica, and changes of templates brought into it
    history   revisions: when there is a new one, and which are kept
    status    fields of the status

Rules shared with plugins and admission are in `gardener.garden.managed_seed_set`.
"""
