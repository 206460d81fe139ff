"""The output folder: files written aside, shards, Parquet, folders in object stores."""
