"""hlotrace.stages: the results of tracing, lowering and compiling ahead of time."""
