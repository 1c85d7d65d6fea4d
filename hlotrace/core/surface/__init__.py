"""What users meet first: the names modules offer, errors on their way out, missing names, JAX's other
options."""
