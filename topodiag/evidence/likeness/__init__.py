"""What an excerpt is like that no reader understands: the cause of the known texts whose words it shares."""
