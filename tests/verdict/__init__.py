"""Tests of topodiag/verdict."""
