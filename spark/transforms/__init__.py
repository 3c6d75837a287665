"""Transforms, DataFrame to DataFrame, without where their input is read and their output written. No UDFs."""
