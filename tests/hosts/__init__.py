"""Several hosts on one machine: network namespaces, and a switch of our own between them. docs/several-hosts-tested.md tells how to use it."""
