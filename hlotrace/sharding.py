"""hlotrace.sharding: where arrays live."""
