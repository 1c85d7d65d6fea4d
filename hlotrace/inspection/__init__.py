"""What reads programs and shardings for people: collectives, Shardy's propagation, retraces, pictures."""
