"""What users meet first: the names of modules, the form of errors, missing names, JAX's other options."""
