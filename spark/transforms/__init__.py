"""DataFrame to DataFrame: what the reports are, without where their input comes from and their output goes. No UDFs."""
