"""The process `deliverer`: one event loop that reads logs, sends to endpoints, and stores what came of it."""
