"""Devices, buffers, compilation and dispatch: the only folder that imports jaxlib."""
