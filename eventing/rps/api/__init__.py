"""Views of the subject: parse, call, answer."""
