"""Rules of membership: records as bytes and signatures, modes."""
