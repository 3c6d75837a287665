"""The mode `webhook`: CloudEvents by HTTP POST, signed by Standard Webhooks."""
