"""The topology that every other part shares: values only, and functions over them. Imports nothing of ours."""
