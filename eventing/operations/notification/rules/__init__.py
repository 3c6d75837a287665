"""Of the notification of alarms."""
