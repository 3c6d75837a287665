"""Administrative events of peering: state of peers, trust."""
