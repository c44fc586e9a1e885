"""What waits for what in a garden, asked of one object.

    finding     one statement about an object, with what can be done about it
    shoot, seed, project
                the findings about these
    protected   the findings about kinds that are kept while others refer to them

Each gets the object and what is around it, as far as it could be read, and yields findings; nothing is read here.
"""
