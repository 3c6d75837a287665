"""Several hosts on one machine: network namespaces, and a switch of our own between them. docs/how-to/testing-several-hosts.md tells how to use it."""
