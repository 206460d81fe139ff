"""Logs as files, in the forms of the programs that write them."""
