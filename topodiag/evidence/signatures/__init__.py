"""Sentences of programs as data: a catalogue of entries, and the one engine that finds them. It judges nothing."""
