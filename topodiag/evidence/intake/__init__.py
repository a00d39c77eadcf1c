"""The front door: what a path is, and the pieces of evidence in it. Opens, unpacks and bounds; reads no format."""
