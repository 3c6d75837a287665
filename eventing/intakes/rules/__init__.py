"""Pure rules of intakes: formats, signatures, conversion to events."""
