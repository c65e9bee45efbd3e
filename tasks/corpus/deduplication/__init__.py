"""Duplicates and near-duplicates: shingles, signatures, candidates, verified similarity, components."""
