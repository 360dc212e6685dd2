"""Proof of stubs by readers apart from ours: xmlschema and libxml2 read the schemas, instances are made of that model."""
