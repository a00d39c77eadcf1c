"""The checks of where ranks are placed, in jobs and in layouts."""
