"""Pictures of the overlay, drawn from a recorded run: `manage.py overlay_pictures`."""
