"""Views of the subject: parse, one call, answer."""
