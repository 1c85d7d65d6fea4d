"""Command-line tools, thin over the library."""
