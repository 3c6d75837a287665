"""Jobs: read, transform, write. One file per report; `running` has their shared parts."""
