"""XML of hwloc's lstopo."""
