"""Sources of bytes and records: files, chunks, tables, databases, archives, object stores."""
