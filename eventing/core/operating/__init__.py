"""What operators watch: alarms, audiences, rules, runs of reports, live sessions. Pure."""
