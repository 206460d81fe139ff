"""Finds secrets in texts: values that only their owner may know. Imports nothing of the package.

`secrets.find_secrets` finds all kinds: tokens with a form of their own (`token_rules`), values that
a name marks (`assignments`, `connected`, `context_rules` and others), values that a table or a dump
shows (`columns`, `dump_rules`). `values` decides what a value looks like: drawn, chosen, a phrase,
a stand-in, code.
"""
