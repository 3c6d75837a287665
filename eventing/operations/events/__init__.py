"""Administrative events of operation: actions of operators, alarms, load."""
