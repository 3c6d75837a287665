"""Packages of Herald: wheels, Debian package, image, chart, recipes for load balancers, and how a release is made of them (README.md)."""
