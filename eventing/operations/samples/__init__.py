"""Load samples: what each gateway process measures and publishes on the administrative RPs."""
