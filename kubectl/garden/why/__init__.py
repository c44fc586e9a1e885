"""What waits for what in a garden, told to whoever asks about one object.

    finding     one thing that is told, with what can be done about it
    shoot, seed, project
                what is told of these
    protected   what is told of the kinds that are kept while others refer to them

Each gets the object and what is around it, as far as it could be read, and yields findings; nothing is read here.
"""
