"""Devices and what is on them: clients, plugins, topologies, buffers, copies between devices."""
