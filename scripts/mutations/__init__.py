"""Kinds of mutation to a correct sample, for scripts/mutate.py.

Each kind changes one place of a decoded sample, the first one that fits, and names the codes under
which a verifier may report it. Most are visible in the sample itself (`calls`, `rows`, `xml`).
The others (`meant`) produce a well-formed sample that is not the intended one: they are visible
only in comparison with the sample's dialogue, which is how `build` checks its own output.
"""
