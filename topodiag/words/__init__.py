"""How things are spelt, once for all rooms: units, plurals, folded names and ranges, safe text."""
