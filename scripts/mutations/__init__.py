"""Kinds of mutation to a correct sample, for scripts/mutate.py.

Each kind changes one place of a decoded sample, the first where it fits, and says under which codes
a verifier may report it. Most show in the sample itself (`calls`, `turns`, `rows`). The others
(`meant`) leave a well-formed sample that is not the one meant: they show beside the dialogue that
the sample was made from, which is how `build` checks its own.
"""
