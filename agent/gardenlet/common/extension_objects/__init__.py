"""Extension objects of a Shoot: requests of a flow to extensions, and the wait for responses.

    objects = ExtensionObjects(client=client, waiting=waiting, clock=clock)
    request = await objects.deploy(INFRASTRUCTURE, manifest)
    infrastructure = await objects.wait(request)

    await objects.delete(INFRASTRUCTURE, name)
    await objects.wait_until_gone(INFRASTRUCTURE, name)

One method each for all kinds; their differences are in the table of `kinds.py`, and the decision to send a request in
`questions.py`. Each method is safe to repeat: an object that exists and has a response is not written again, a lost
request is sent again. Waiting uses watches; absence is checked with the API server.
"""
