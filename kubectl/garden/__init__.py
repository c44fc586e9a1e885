"""`kubectl gardener`: a garden for people.

What is told is decided in `gardener.garden.why`, access to Shoots by `gardenapi`; here it is read and shown.

commands/    a module a command
kinds        what people call the kinds that can be asked about
reading      an object and what is around it
"""
