"""Where ranks sit: files of launchers, our own maps, groups, and what logs show."""
