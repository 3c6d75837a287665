"""Tests of intakes."""
