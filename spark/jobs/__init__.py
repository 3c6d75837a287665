"""Jobs: read, transform, write. One file per report; `running` is what they share."""
