"""Tests that run the programs of examples/ and the commands of the guides about them."""
