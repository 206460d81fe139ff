"""Asks other engines about proven samples: do they render and read them as we do?"""
