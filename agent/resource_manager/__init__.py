"""Resource manager: one package for each controller, and modules that several of them need."""
