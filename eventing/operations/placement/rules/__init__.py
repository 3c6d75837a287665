"""Rules of placement: pure, the same live and in the simulator."""
