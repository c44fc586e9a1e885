"""Operations of Shoots that met a rate limit of the infrastructure are retried."""
