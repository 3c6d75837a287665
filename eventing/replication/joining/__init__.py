"""Replicas: asked for, answered, told of and kept alive between domains."""
