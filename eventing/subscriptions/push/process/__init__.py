"""The process `deliverer`: one event loop that reads logs, sends to endpoints, and stores the outcomes."""
