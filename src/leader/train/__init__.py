"""Training of the embedded prior and of variance heads for other networks."""
