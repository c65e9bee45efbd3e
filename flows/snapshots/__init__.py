"""Versions of the corpus: which there are, how they differ, where they lie, and how to get them back."""
