"""Extension objects of a Shoot: what a flow asks of extensions, and waits for.

    objects = ExtensionObjects(client=client, waiting=waiting, clock=clock)
    asked = await objects.deploy(INFRASTRUCTURE, manifest)
    infrastructure = await objects.wait(asked)
    await objects.delete(INFRASTRUCTURE, name)
    await objects.wait_until_gone(INFRASTRUCTURE, name)

One function each for all kinds; what differs is in the table of `kinds.py`, and whether an extension is asked in
`questions.py`. Each of them can be repeated from the top: an object that is there and answered is not written again, a
question that got lost is asked again. Waiting is by watch; that something does not exist is asked of the API server.
"""
