"""A program as StableHLO text.  A pure function: no jaxlib, no device."""
