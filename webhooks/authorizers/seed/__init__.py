"""Restrict gardenlets to objects of their Seeds: an authorizer, and admission of the objects they write.

rules/authorize.py     requests that a gardenlet may send, by the graph of `gardener.garden.seed_graph`
rules/restriction.py   objects that it may write; rules about their content are in the modules next to it
graph.py               the graph, kept current by watches; confirms refusals at the API server
webhook.py             the two webhooks that API servers call
"""
