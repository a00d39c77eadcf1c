"""From raw bytes to facts with their origin, never a verdict: a room a subject, a module a format or a few alike."""
