"""The documents of this release, as the domain itself shows them below /docs/: which files, how they are rendered, search."""
