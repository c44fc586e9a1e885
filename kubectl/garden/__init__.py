"""`kubectl gardener`: a garden for people.

    commands/    a module a command
    kinds        what people call the kinds that can be asked about
    reading      an object and what is around it
    why/         what an object waits for, and what is wrong with it: pure

Access to Shoots comes from `gardenapi`.
"""
