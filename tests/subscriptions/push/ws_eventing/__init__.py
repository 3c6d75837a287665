"""Tests of WS-Eventing."""
