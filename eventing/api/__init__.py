"""The management interface: Django REST framework over services and selectors. Views parse, make one call and answer."""
