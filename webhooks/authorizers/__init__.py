"""Authorization webhooks, called by API servers configured for them, before admission and also for reads.

`decisions` has the decisions of rules, `review` reads and writes SubjectAccessReviews, `endpoint` answers them. `seed`
restricts gardenlets to objects of their Seeds.
"""
