"""hwloc's topology: the XML and the text of lstopo."""
