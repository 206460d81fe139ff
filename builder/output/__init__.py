"""Writes the output folder: atomic files, shards, Parquet, folders in object stores."""
