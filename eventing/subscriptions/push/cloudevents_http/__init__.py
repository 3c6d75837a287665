"""The mode `cloudevents-http`: CloudEvents by HTTP POST, after the handshake of the CloudEvents webhook specification."""
