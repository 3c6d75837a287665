"""Herald's database engine for PostgreSQL: Django's own with a bounded pool and migrations that do not wait for locks for long."""
