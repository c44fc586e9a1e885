"""`kubectl gardener`: a garden for people.

commands/    a module per command
kinds        names for the kinds that commands accept
reading      an object and related ones
selection    Shoots selected on a command line
changing     commands that change Shoots
evacuation   moves of all Shoots off a Seed
obstacles    requests without effect in the state of a Shoot: pure
waiting      wait for Shoots
why/         what an object waits for, and its problems: pure

Access to Shoots comes from `gardenapi`.
"""
