"""Primitives that know devices: collectives, shard_map, shardings."""
