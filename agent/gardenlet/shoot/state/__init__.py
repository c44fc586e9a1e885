"""What a Shoot needs elsewhere, should its seed be lost: saved in the garden now and then."""
