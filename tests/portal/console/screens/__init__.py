"""Pictures of every page of the console, in its states, for docs/screens/: `make screens`."""
