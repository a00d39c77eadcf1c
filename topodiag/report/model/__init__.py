"""Answers of the alpha-beta model, with their derivation."""
