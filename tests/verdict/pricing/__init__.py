"""Tests of topodiag/verdict/pricing."""
