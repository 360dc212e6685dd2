"""Inventory objects in messages: which classes are objects, and where they stand in flat replies and nested layouts.

Pure lxml and tables of the stubs; the Spark source and the commands for people stand on it.
"""
