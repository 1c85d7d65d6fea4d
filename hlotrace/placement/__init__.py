"""Where arrays are: shardings as users give them, meshes over the devices there are, device_put."""
