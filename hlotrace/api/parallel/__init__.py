"""Programs that name their devices: shard_map, pmap, custom_partitioning, plan."""
