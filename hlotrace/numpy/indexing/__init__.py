"""Elements read and written: x[...], x.at[...], take, where, segments, Refs."""
