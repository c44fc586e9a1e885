"""How many Seeds a SeedAutoscaler wants a ManagedSeedSet to have: its rules, without I/O.

settings     what the spec says
loads        what Seeds carry and have room for
prometheus   what is measured of other resources than Shoots
recommendation  what each metric asks for
history      what was asked for in the windows of stabilization
decision     the number of replicas, and why it is so
observing    from objects to what is decided by
pending      Shoots that wait for a Seed of the set
status       what the status says
"""
