"""Number of Seeds that a SeedAutoscaler requests for a ManagedSeedSet: its rules, without I/O.

settings     fields of the spec
loads        usage and capacity of Seeds
prometheus   measurements of other resources than Shoots
recommendation  number of replicas by each metric
history      recommendations in the windows of stabilization
decision     the number of replicas, with the reason
observation  from objects to the input of a decision
pending      Shoots that wait for a Seed of the set
"""
