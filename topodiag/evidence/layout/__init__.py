"""Where ranks sit and how a job is parallel: launchers' files, maps, groups, arguments, and what logs show."""
