"""Dependencies between objects in a garden, for one object.

finding     one statement about an object, with its remedy
shoot, seed, project
            the findings about these
protected   the findings about kinds that are kept while others refer to them

Each gets the object and related ones, as far as they could be read, and yields findings; nothing is read here.
"""
