"""Cline, Roo Code and Kilo Code."""
