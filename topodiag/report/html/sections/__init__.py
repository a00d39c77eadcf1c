"""The sections of the page: each module has `section(sheet)`, which gives values for its template or None."""
