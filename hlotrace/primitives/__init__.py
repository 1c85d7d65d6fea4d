"""The primitives, one file a family; each primitive complete in one place."""
