"""`kubectl gardener`: a garden for people.

commands/    a module per command
kinds        names for the kinds that commands accept
reading      an object and related ones
why/         what an object waits for, and its problems: pure

Access to Shoots comes from `gardenapi`.
"""
