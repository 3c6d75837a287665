"""Reports over access records, by Spark. Imports nothing of Herald's server: its input is a file format
(docs/records.md).
"""
