"""Tests of WebSub."""
