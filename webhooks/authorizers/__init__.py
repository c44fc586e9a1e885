"""Authorization webhooks: what API servers ask that are configured to, before admission, and also about reads.

`attributes` is a request and its decision as rules see them, `review` how both are written (SubjectAccessReviews),
`endpoint` what answers. `seed` keeps gardenlets to what belongs to their Seeds.
"""
