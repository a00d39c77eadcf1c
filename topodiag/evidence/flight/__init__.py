"""Dumps of torch's flight recorder, read without running what they hold."""
