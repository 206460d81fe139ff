"""Serves the pages of the viewer: the index of a dataset, its facets and its search."""
